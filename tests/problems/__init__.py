"""What the sampler tests share: small problems of every potential, the package's draws, and checks of moments.

======================  =================================================================================
``cases``               problems of every potential, as the package takes them and as the oracles do
``draws``               the package's random numbers, handed to the transcription one at a time
``agreement``           sampled moments against exact ones, with tolerances from theory
======================  =================================================================================
"""
