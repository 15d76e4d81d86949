"""Exact answers and plain transcriptions that the tests compare the package with.

Everything here was written from the specification of the samplers alone and imports nothing of ``fald_hpc``:
an oracle that shared code with what it checks would agree with its faults.

======================  =================================================================================
``quadratics``          clients with quadratic potentials, full gradients or enumerated minibatches
``recursions``          FALD and VR-FALD* on quadratics as random affine recursions, right and wrong forms
``moments``             stationary mean and covariance of such a recursion, by a linear solve
``averages``            the variance of time averages of such a recursion, hence tolerances
``closed_forms``        the two cases with a printed formula
``transcription``       the samplers, line by line in NumPy, fed with draws from outside
``messages``            the message count of a schedule
``models``              row gradients of the regression models
``titanic``             the Titanic table, splits, and its posterior by importance sampling
``exact``               correctly rounded sums, means and elementary functions
======================  =================================================================================
"""
