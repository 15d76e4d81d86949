"""The drift watch: what the theory of FALD and VR-FALD* is about, measured on the run itself.

===============  ==========================================================================================
``grid``         after which iterations the watch looks: a fixed set, the same on any layout
``look``         what a look measures of every client, at the point where all clients agree
``watch``        the sums of a run: streamed, in the checkpoint, the same bytes on any number of ranks
``numbers``      these sums as numbers by client, and their digest
``spread``       the posterior's spread in the units of the sampled parameters
``waiting``      the time that ranks wait for each other in messages
``text``         all this as lines of text
===============  ==========================================================================================

The distance to the mean just before averaging is summed in the compiled loop (:mod:`fald_hpc.kernels.recording`).
"""
