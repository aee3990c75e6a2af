"""Raw problems to training problems. Each step is one module with one function from problems to a StepResult.

The stage that runs them in order and writes the artifact is ``ulorl.curate.stage``.
"""
