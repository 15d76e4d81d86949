"""Federated Bayesian posteriors by FALD and VR-FALD*."""
