"""Workload controllers: which pods they create and delete (`plans`), and when (`controllers`).

`plans` and `job_plan` are functions of a controller and its pods; they know no clock and no store.
"""
