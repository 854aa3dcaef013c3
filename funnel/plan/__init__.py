"""From a policy and a source's schema to a plan: the stages that `plan` prints and `run` carries out."""
