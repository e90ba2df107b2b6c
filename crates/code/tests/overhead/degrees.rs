//! Degrees for those samplings that have neither a precode nor an even hand, so that batches must reach the last
//! symbols by themselves: for the [`RANKS`] of the trials with eta = 0.01, by `examples/bats_degrees`
//! (`tests/degree_tables.rs` asks it again). The defaults, made for decoders that inactivate a tenth of the symbols,
//! would leave symbols out for long.

/// Number of batches of a hundred that have rank 0, 1, .. 16 when they arrive: 13.1 on average, which is 0.82 M.
pub(crate) const RANKS: [f64; 17] =
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 5.0, 9.0, 17.0, 23.0, 23.0, 15.0, 6.0];

/// K, and its degrees with their probabilities.
#[rustfmt::skip]
pub(crate) const TABLES: [(usize, &[(usize, f64)]); 3] = [
    (128, &[
        (16, 0.162832),
        (17, 0.110788),
        (22, 0.120314),
        (23, 0.026404),
        (28, 0.048931),
        (29, 0.056819),
        (37, 0.003414),
        (38, 0.104698),
        (58, 0.111804),
        (128, 0.253996),
    ]),
    (256, &[
        (16, 0.174667),
        (17, 0.126980),
        (22, 0.089128),
        (23, 0.085186),
        (30, 0.123299),
        (39, 0.075262),
        (40, 0.008311),
        (50, 0.025060),
        (51, 0.049735),
        (71, 0.049228),
        (72, 0.023007),
        (114, 0.066398),
        (256, 0.103740),
    ]),
    (1024, &[
        (16, 0.181716),
        (17, 0.129814),
        (22, 0.099289),
        (23, 0.080344),
        (30, 0.131924),
        (40, 0.081347),
        (41, 0.018076),
        (53, 0.011044),
        (54, 0.061578),
        (71, 0.021934),
        (72, 0.030248),
        (94, 0.034341),
        (95, 0.004618),
        (125, 0.012281),
        (126, 0.020605),
        (175, 0.002110),
        (176, 0.025553),
        (262, 0.022048),
        (423, 0.005480),
        (424, 0.011261),
        (819, 0.013108),
        (820, 0.001281),
    ]),
];
