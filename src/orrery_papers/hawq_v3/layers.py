"""ResNet50 as HAWQ-V3 gives it to its integer program: shapes, and what its authors measured of every layer.

Shapes are those of ResNet50 (v1: the first convolution of a stage strides) for 8 pictures, convolutions as products of
(pictures x height x width) rows; the first convolution and the classifier are no choice. Traces, errors and times are
the arrays of ILP.ipynb in the authors' repository (github.com/Zhen-Dong/HAWQ): mean trace of the Hessian, squared error
of the weights at 8 and 4 bits, and latency on a T4 with TVM at a batch of 8, whose unit, taken as milliseconds, the
notebook does not say. The two convolutions that read a stage's input share a choice, as there.
"""

from collections.abc import Iterator

from orrery.kernels.ops import Gemm
from orrery.planner.bits.layer import Layer, product
from orrery_papers.shared.described import written

EIGHT, FOUR = "int8", "int4_int4"
BATCH = 8
STAGES = ((3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7))
"""Units of a stage, its width, and the height of its pictures."""


def resnet50(batch: int = BATCH, has_times: bool = True) -> tuple[Layer, ...]:
    """The 52 layers with traces and errors, and with the authors' times on a T4 unless the kernels floor is to tell."""
    return tuple(
        Layer(
            name=name,
            group=name.split(".")[0],
            work=product(batch * rows, n, k),
            num_parameters=n * k,
            tied=tied,
            weight_ratio=trace,
            errors={EIGHT: error_8, FOUR: error_4},
            times_s={EIGHT: time_8_s, FOUR: time_4_s} if has_times else {},
        )
        for (name, rows, n, k, tied), (trace, error_8, error_4, time_8_s, time_4_s) in zip(
            _shapes(), MEASURED, strict=True
        )
    )


def layers_file(batch: int) -> str:
    """The layers as a list that ``orrery bits --layers`` reads, without measured times."""
    head = f"name,group,m,n,k,tied,trace,error_{EIGHT},error_{FOUR}"
    rows = [
        f"{x.name},{x.group},{x.work.m},{x.work.n},{x.work.k},{x.tied},{x.weight_ratio},{x.errors[EIGHT]},{x.errors[FOUR]}"
        for x in resnet50(batch, has_times=False)
        if isinstance(x.work, Gemm)
    ]
    return written("\n".join([head, *rows, ""]), "resnet50.csv")


def _shapes() -> Iterator[tuple[str, int, int, int, str]]:
    """Name, rows of one picture, outputs, inputs, and the choice that is shared, in the notebook's order."""
    inputs = STAGES[0][1]
    for stage, (units, width, height) in enumerate(STAGES, start=1):
        for unit in range(1, units + 1):
            layers = [("conv1", inputs, width), ("conv2", 9 * width, width), ("conv3", width, 4 * width)]
            if unit == 1:
                layers.append(("shortcut", inputs, 4 * width))
            for name, k, n in layers:
                tied = f"stage{stage}" if unit == 1 and name in ("conv1", "shortcut") else ""
                yield f"stage{stage}.unit{unit}.{name}", height * height, n, k, tied
            inputs = 4 * width


MEASURED = (
    (0.192701, 0.0031, 0.9257, 7.07937e-05, 7.01819e-05),
    (0.0267025, 0.0025, 0.6624, 0.000360406, 0.000224818),
    (0.0944862, 0.0123, 3.4605, 0.000276495, 0.000275102),
    (0.076394, 0.0025, 0.7805, 0.000276513, 0.000275126),
    (0.00968889, 0.0024, 0.804, 0.000161178, 0.000105122),
    (0.00671124, 0.0062, 2.0657, 0.00036102, 0.000224731),
    (0.0243786, 0.0019, 0.5947, 0.000276361, 0.00021537),
    (0.0117692, 0.0023, 0.7596, 0.000161113, 0.000105062),
    (0.00250671, 0.003, 0.9826, 0.000360649, 0.000224815),
    (0.00803999, 0.001, 0.3381, 0.000248844, 0.000189387),
    (0.00847777, 0.014, 4.0922, 7.21869e-05, 5.09135e-05),
    (0.00172634, 0.0052, 1.5506, 0.000348998, 0.000196774),
    (0.00313899, 0.0204, 6.0288, 0.000196004, 0.000151088),
    (0.00436518, 0.0054, 1.7186, 0.000295059, 0.000168248),
    (0.0015508, 0.0064, 2.0701, 0.000160746, 8.48311e-05),
    (0.00156193, 0.0141, 4.608, 0.000349049, 0.000196843),
    (0.00270123, 0.0041, 1.3128, 0.000196037, 0.000151206),
    (0.00238359, 0.0067, 2.1613, 0.000160676, 8.48123e-05),
    (0.00103206, 0.0094, 3.071, 0.000349198, 0.000196679),
    (0.00257244, 0.0029, 0.9209, 0.000196051, 0.000151216),
    (0.00463855, 0.0103, 3.2794, 0.000160895, 8.47675e-05),
    (0.000854053, 0.0095, 3.0883, 0.00034916, 0.000196739),
    (0.00380982, 0.003, 0.9841, 0.00019616, 0.000151238),
    (0.00195351, 0.0243, 7.7154, 8.17232e-05, 4.86696e-05),
    (0.000560924, 0.014, 4.3872, 0.000331667, 0.000206061),
    (0.00186962, 0.0371, 11.7131, 0.000155346, 0.000101501),
    (0.00169333, 0.0131, 4.1949, 0.000307121, 0.000169953),
    (0.000607572, 0.0144, 4.6766, 0.000155103, 9.35593e-05),
    (0.000444982, 0.027, 8.7215, 0.000331726, 0.000205988),
    (0.000838229, 0.0078, 2.5369, 0.000155417, 0.000101463),
    (0.000603145, 0.0147, 4.8132, 0.0001529, 9.36246e-05),
    (0.00039512, 0.0192, 6.1627, 0.000331795, 0.000206097),
    (0.000718781, 0.0066, 2.1765, 0.000155519, 0.000101885),
    (0.000838072, 0.0162, 5.2257, 0.000152528, 9.36013e-05),
    (0.000379735, 0.021, 6.75, 0.000331655, 0.000206181),
    (0.000828752, 0.0063, 2.0171, 0.000155296, 0.00010151),
    (0.00130686, 0.0161, 5.2612, 0.000152294, 9.35238e-05),
    (0.000447654, 0.0169, 5.5459, 0.000331874, 0.000206038),
    (0.00126693, 0.0054, 1.7509, 0.00015545, 0.00010158),
    (0.00130984, 0.0194, 6.2498, 0.000152759, 9.36555e-05),
    (0.000326959, 0.0241, 7.4798, 0.000331614, 0.000205999),
    (0.0012138, 0.0061, 1.9959, 0.000155667, 0.00010143),
    (0.00106353, 0.0436, 13.8412, 8.39055e-05, 8.04763e-05),
    (0.00024803, 0.0267, 8.3407, 0.000330573, 0.000207775),
    (0.000594366, 0.0551, 18.02, 0.000152, 8.81947e-05),
    (0.00072155, 0.0217, 6.9997, 0.000339199, 0.00017925),
    (0.000612713, 0.0533, 15.3605, 0.00016636, 0.000102683),
    (0.000254129, 0.0589, 17.515, 0.000330929, 0.000207807),
    (0.000504953, 0.0212, 6.4017, 0.000151792, 8.79562e-05),
    (0.000702527, 0.0562, 16.0258, 0.00016673, 0.000102657),
    (0.000248594, 0.0392, 10.7682, 0.000330866, 0.000207812),
    (0.000525604, 0.0246, 8.08, 0.000151962, 8.79306e-05),
)
"""Trace, squared error at 8 and at 4 bits, seconds at 8 and at 4 bits."""
