"""What is published of canonical decoding, and the same figures here.

Tran-Thien 2024, "Fast, High-Fidelity LLM Decoding with Regex Constraints", with its appendix and notebook; and the index of a JSON object
that notes on guided decoding show of coalescence (the one of vLLM's plans of November 2024).
"""
