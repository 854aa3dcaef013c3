"""What others make of releases: attackers with published files, who know how everybody is distributed."""
