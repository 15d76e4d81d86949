"""Real runs, and what is done to them: signals, dead launchers, full disks, locks."""
