"""What a grammar leaves no choice about, in the tokenizer's own tokens."""

from grammar_service.segments.left_end import MOST_TAIL
from grammar_service.segments.segment import NOTHING, Segment
from grammar_service.segments.segmenter import Segmenter

__all__ = ["MOST_TAIL", "NOTHING", "Segment", "Segmenter"]
