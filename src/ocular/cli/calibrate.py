"""`ocular calibrate`: logs and a model in, one portable file and an account of it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import tyro

from ocular.errors import InputError, check_choice, check_probability

if TYPE_CHECKING:
    from ocular.calibrators import Calibration, Calibrator
    from ocular.data import TransitionStore
    from ocular.dynamics import GaussianModel
    from ocular.encoding import TrainingSettings
    from ocular.evaluation.account import Account, LeftOut
    from ocular.partition import TreeSettings
    from ocular.records import Floats, Transitions

CANDIDATES = (150, 300, 600)  # points a leaf to choose among
T = TypeVar("T")
Stores = list[tuple["TransitionStore", list[str]]]  # with the parts to be used


@dataclass(frozen=True)
class Calibrate:
    """Calibrate a robot's model on its logs, into one portable file, and say how good it is.

    The account ends with coverage and volume in new places: each environment is left out in turn, which
    trains an encoder each; --no-account spares that. Any alpha can be asked of the file later.

    With --select, the tree's settings are chosen among those given by leaving environments out, too, within
    the split that draws the cells: the thresholds' promise stays whole. The account then repeats the choice
    without each environment.
    """

    store: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Directories of transition stores; environments of the same name are one place."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The file to write."""
    model: str
    """What predicts the robot: a TOML file (docs/models.md), or planar or camera for the paper's worlds."""
    method: Literal["nocp", "splitcp", "lucca", "ocular", "ocular_no_encode"] = "ocular"
    """Which calibrator."""
    alpha: float = 0.1
    """The account is of regions that hold the next state with probability 1 - alpha."""
    features: str | None = None
    """What cells look at besides the latent, such as body, wheels or action; the method's own unless told."""
    select: bool = False
    """Choose --min-leaf and --max-depth, which may then be several: of those that cover every environment
    left out, the one with the smallest regions. It trains an encoder for each environment."""
    min_leaf: tuple[int, ...] = ()
    """Transitions that each cell needs when cells are drawn: 300 unless told, or 150, 300 and 600 to choose
    among."""
    max_depth: tuple[int, ...] = (13,)
    """Most levels of the tree that draws them."""
    fallback: bool = False
    """Cells with too few transitions take those of the part of the tree around them, too."""
    without: tuple[str, ...] = ()
    """Parts of the stores to leave out."""
    quick: bool = False
    """Train encoders briefly and on fewer footprints: for a first look."""
    account: bool = True
    """Leave each environment out in turn, and test on it."""
    seed: int = 0
    """Seed of the split, the encoder and the tree."""
    scheduler: str | None = None
    """Address of a dask scheduler (tcp://host:port) whose workers read, score and encode the parts of the
    stores; they must see the same folders, under the same names."""
    json: bool = False
    """Print the account as one JSON object."""

    def run(self) -> None:
        """Fit, save, test on environments left out, and print the account."""
        from ocular.calibrators import save
        from ocular.cli.output import print_json
        from ocular.data import join_logs
        from ocular.evaluation.account import account
        from ocular.experiments.cluster import workers_at
        from ocular.locks import sole_file

        if not self.output.absolute().parent.is_dir():
            raise InputError(f"-o is {self.output}; allowed is a file in a directory that exists")
        check_probability("--alpha", self.alpha)
        self._check_settings()
        model, state_cov = model_of(self.model)
        stores = open_stores(self.store, self.without)
        logs = join_logs(stores)  # part by part: they need not fit in memory
        with sole_file(self.output):
            with workers_at(self.scheduler, workers=1):
                calibration = self._with_progress(
                    "calibrating",
                    lambda calibrator: calibrator.fit(logs, model, state_cov, seed=self.seed),
                    environments=len(logs.environments),
                )
            save(calibration, self.output)
        left_out = self._leave_out(calibration, load_all(stores)) if self.account else []
        found = account(calibration, _counts(stores), self.alpha, left_out)
        if self.json:
            print_json(found)
        else:
            self._print(found)

    def _leave_out(self, calibration: Calibration, logs: Transitions) -> list[LeftOut]:
        from ocular.evaluation.account import leave_out

        if len(logs.environments) == 1:
            return []
        found = []
        for name in logs.environments:
            test = partial(
                leave_out, name, transitions=logs, like=calibration, alpha=self.alpha, seed=self.seed
            )
            others = len(logs.environments) - 1
            found.append(self._with_progress(f"leaving out {name}", test, environments=others))
        return found

    def _trees(self) -> tuple[TreeSettings, ...]:
        """The settings to choose among, or the only one."""
        from ocular.partition import TreeSettings

        leaves = self.min_leaf or (CANDIDATES if self.select else (TreeSettings().min_leaf,))
        return tuple(TreeSettings(depth, leaf) for depth in self.max_depth for leaf in leaves)

    def _check_settings(self) -> None:
        if not self.select and len(self._trees()) != 1:
            raise InputError(
                f"--min-leaf is {self.min_leaf} and --max-depth {self.max_depth}; allowed is one each, or "
                "--select to choose among several"
            )
        if self.select and self.method in ("nocp", "splitcp"):
            raise InputError(f"--select with --method {self.method}; allowed are methods with a tree")

    def _with_progress(self, what: str, work: Callable[[Calibrator], T], *, environments: int) -> T:
        """Do this with the calibrator, whose encoder's training shows how far it is."""
        from ocular.calibrators import METHODS, LocalCalibrator, Selecting
        from ocular.encoding import ConvEncoder, Sights
        from ocular.progress import progress

        settings = training_settings(self.quick)
        trainings = (1 + self.select * environments) * (self.method == "ocular")
        with progress(what, 1 + settings.epochs * trainings) as advance:

            def encoder(footprints: Sights, seed: int) -> ConvEncoder:
                from ocular.encoding.training import train

                def tell(epoch: int, _loss: float, accuracy: float) -> None:
                    advance(f"epoch {epoch}: {accuracy:.1%} of held-out cells reconstructed")

                return train(footprints, settings, seed, progress=tell)[0]

            calibrator: Calibrator = METHODS[self.method].make(encoder)
            if isinstance(calibrator, LocalCalibrator):
                local = replace(
                    calibrator,
                    features=self.features or calibrator.features,
                    tree=self._trees()[0],
                    fallback=self.fallback,
                )
                calibrator = Selecting(local, self._trees(), self.alpha) if self.select else local
            done = work(calibrator)
            advance("done")
            return done

    def _print(self, account: Account) -> None:
        from ocular.cli.output import number, print_warnings, result
        from ocular.report import print_table
        from ocular.report.trials import selection_table

        places = ", ".join(f"{name} {count:,}" for name, count in account.environments.items())
        print(f"{self.output}: {account.method} on {account.transitions:,} transitions: {places}")
        cells = "1 cell" if account.cells == 1 else f"{account.cells} cells"
        print(f"{cells}; least, median and most at alpha = {account.alpha:g}:")
        if (points := account.points) is not None:
            print(f"  {'points a cell':14}{points.least:,.0f}, {points.median:,.0f}, {points.most:,.0f}")
        for name, spread in (("threshold", account.thresholds), ("xi", account.scales)):
            print(f"  {name:14}{number(spread.least)}, {number(spread.median)}, {number(spread.most)}")
        if account.selection is not None:
            print_table(selection_table(account.selection))
        if account.left_out:
            print("each environment left out, and tested by a calibration on the others:")
        for left in account.left_out:
            print(f"  {left.environment:14}{result(left.tested) if left.tested else left.reason}")
        print_warnings(account.warnings)


def training_settings(quick: bool) -> TrainingSettings:
    """How encoders are trained, or how briefly for a first look."""
    from ocular.encoding import TrainingSettings

    if not quick:
        return TrainingSettings()
    from ocular.experiments.coverage import QUICK_EPOCHS, QUICK_FOOTPRINTS

    return TrainingSettings(epochs=QUICK_EPOCHS, most_footprints=QUICK_FOOTPRINTS)


def model_of(name: str) -> tuple[GaussianModel, Floats]:
    """The model that --model names, and the covariance of its state estimates."""
    from ocular.dynamics.model_file import load_robot
    from ocular.experiments.worlds import SETTINGS, open_map

    if name in SETTINGS:
        any_map = SETTINGS[name].site.maps[0]  # the nominal model does not depend on it
        _, truth = open_map(name, any_map)
        return truth.nominal, truth.state_cov
    if not Path(name).is_file():
        raise InputError(
            f"--model is {name!r}; allowed are {', '.join(SETTINGS)} and the path of a TOML file"
        )
    robot = load_robot(name)
    if robot.state_cov is None:
        raise InputError(
            f"{name} has no state_cov; allowed is the covariance of the state estimates that predictions "
            "start from: a number, a diagonal, or rows"
        )
    return robot.model, robot.state_cov


def load_stores(paths: tuple[Path, ...], without: tuple[str, ...] = ()) -> Transitions:
    """Everything in these stores, except for some parts."""
    return load_all(open_stores(paths, without))


def load_all(stores: Stores) -> Transitions:
    """These parts, in memory."""
    from ocular.records import concatenate

    return concatenate([store.load(parts) for store, parts in stores])


def open_stores(paths: tuple[Path, ...], without: tuple[str, ...] = ()) -> Stores:
    """These stores, each with the parts that are not left out."""
    from ocular.data import TransitionStore

    if not paths:
        raise InputError("no store is given; allowed is at least one directory of a transition store")
    twice = {str(path) for path in paths if [other.resolve() for other in paths].count(path.resolve()) > 1}
    if twice:
        raise InputError(f"{', '.join(sorted(twice))} is given more than once; allowed is each store once")
    stores = [TransitionStore.open(path) for path in paths]
    every_part = [part for store in stores for part in store.parts]
    for part in without:
        check_choice("--without", part, every_part)
    kept = [(store, [part for part in store.parts if part not in without]) for store in stores]
    if not any(parts for _, parts in kept):
        raise InputError(f"nothing is left of the parts {every_part}; allowed is at least one")
    return [(store, parts) for store, parts in kept if parts]


def _counts(stores: Stores) -> dict[str, int]:
    """How many transitions each environment has."""
    counts: Counter[str] = Counter()
    for store, parts in stores:
        for part in parts:
            counts.update(store.summary()[part].environments)
    return dict(counts)
