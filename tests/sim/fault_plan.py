"""The plan of a world of the fault simulation: options and steps, drawn from a seed.

A plan can be played as it was drawn, or with steps and kinds of faults left out.
"""

from dataclasses import dataclass, fields, replace

from bayplan.rng import stream
from tests.adapters.faulty_cluster import FaultOptions

#: The number of seeds in `make test`. One of them finds each planted fault (`test_planted_faults`).
SEEDS_BY_DEFAULT = 100
FAULTY_SECONDS = 60.0

#: Worlds are small: with lower chances a fault would hardly ever happen.
_CHANCES = (0.02, 0.1, 0.3)
_SLOW_SECONDS = (0.05, 0.5, 3.0, 20.0)


def drawn_faults(seed: int) -> FaultOptions:
    """The faults between scheduler and API server; each kind is absent in a part of all worlds."""
    random = stream(seed, "faults of a world")

    def chance() -> float:
        return random.choice(_CHANCES) if random.random() < 0.5 else 0.0

    return FaultOptions(
        seed=seed,
        watch_drops=chance(),
        watch_lags=chance(),
        gone_on_resume=chance(),
        list_failures=chance(),
        conflicts=chance(),
        refusals=chance(),
        unknown_outcomes=chance(),
        slow_calls=chance(),
        slow_seconds=random.choice(_SLOW_SECONDS),
        node_losses=random.choice((0, 0, 1, 2, 4)),
        clock_steps=random.choice((0, 0, 1, 3)),
    )


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """What a world contains; each kind of thing is absent in a part of all worlds."""

    has_storage: bool = False
    has_devices: bool = False
    has_extender: bool = False
    #: A plugin outside the tree that raises by chance.
    has_raising_plugin: bool = False
    has_budgets: bool = False
    #: The scheduler evicts pods for a resize that the kubelet deferred.
    preempts_for_resizes: bool = False
    #: The times of upstream's pod garbage collector instead of short times.
    is_pod_gc_slow: bool = False
    foreign_count: int = 0
    #: For each decision: another program binds the pod to another node before the scheduler does.
    snatch_chance: float = 0.0
    #: For each removal: the API server drops its history, so that no watch delivers the removal.
    forget_chance: float = 0.0
    #: For each node that the scheduler selects for a claim: the provisioner refuses the node.
    provision_failures: float = 0.0

    @classmethod
    def drawn(cls, seed: int) -> "WorldOptions":
        random = stream(seed, "world options")
        return cls(
            has_storage=random.random() < 0.7,
            has_devices=random.random() < 0.7,
            has_extender=random.random() < 0.3,
            has_raising_plugin=random.random() < 0.2,
            has_budgets=random.random() < 0.7,
            preempts_for_resizes=random.random() < 0.3,
            is_pod_gc_slow=random.random() < 0.5,
            foreign_count=random.choice((0, 3, 8)),
            snatch_chance=random.choice((0.0, 0.1)),
            forget_chance=random.choice((0.0, 0.5)),
            provision_failures=random.choice((0.0, 0.3)),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A method of the world, and the time of its call."""

    #: Names the step's stream of random numbers.
    number: int
    at_seconds: float
    verb: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All inputs of a world."""

    seed: int
    faults: FaultOptions
    options: WorldOptions
    steps: tuple[Step, ...]

    @classmethod
    def drawn(cls, seed: int) -> "Plan":
        faults, options = drawn_faults(seed), WorldOptions.drawn(seed)
        return cls(seed, faults, options, _drawn_steps(seed, faults, options))

    def __str__(self) -> str:
        set_options = (
            f"{field.name}={value:g}"
            for field in fields(self.options)
            if (value := getattr(self.options, field.name))
        )
        return " ".join((str(self.faults), *set_options, f"steps={len(self.steps)}"))

    def simpler(self) -> list["Plan"]:
        """This plan without one kind of fault or thing, once for each kind that it has."""
        without_faults = [
            replace(self, faults=replace(self.faults, **{field.name: 0}))
            for field in fields(self.faults)
            if field.name not in ("seed", "slow_seconds") and getattr(self.faults, field.name)
        ]
        without_options = [
            replace(self, options=replace(self.options, **{field.name: field.default}))
            for field in fields(self.options)
            if getattr(self.options, field.name)
        ]
        return [*without_faults, *without_options]


def _drawn_steps(seed: int, faults: FaultOptions, options: WorldOptions) -> tuple[Step, ...]:
    random = stream(seed, "fault world")
    losses = faults.node_losses
    counts = {
        "add_pod": random.randint(8, 22),
        "add_burst": random.randint(0, 2),
        "delete_pod": random.randint(0, 6),
        "replace_pod": random.randint(0, 5),
        "end_pod": random.randint(0, 6),
        "resize_pod": random.choice((0, 0, 2, 5)),
        "ungate": 3,
        "add_gang": random.randint(0, 3),
        "change_group": random.randint(0, 2),
        "change_node": random.randint(0, 5),
        "lose_node": losses,
        "flap_node": random.randint(0, 2) if losses else 0,
        "add_node": random.randint(0, losses + 1),
        "replace_node": random.randint(0, losses),
        "replace_claim": random.randint(0, 3),
        "step_clock": faults.clock_steps,
        "add_foreign_pod": options.foreign_count,
        "bind_foreign": options.foreign_count,
        "change_leader": random.choice((0, 0, 0, 1)),
        "change_leader_amid_a_binding": random.choice((0, 0, 1, 1)),
    }
    # Steps of several actions, for rules that single pods hardly ever meet.
    stories = stream(seed, "stories of a world")
    counts |= {verb: stories.choice((0, 1)) for verb in ("add_sidecars", "roll_out", "fill")}
    verbs = [verb for verb, count in counts.items() for _ in range(count)]
    timed = sorted((random.uniform(0, FAULTY_SECONDS), verb) for verb in verbs)
    first = [(0.0, "add_node")] * random.randint(2, 6)
    return tuple(Step(number, *entry) for number, entry in enumerate([*first, *timed]))
