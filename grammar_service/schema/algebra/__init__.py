"""Sets of JSON values by type, on which intersection, union and complement are exact."""
