"""Scaling studies: measured runs at several numbers of ranks, and a model of their time fitted on the machine.

Nothing is imported here, so that a measuring process loads only what it measures.
"""
