//! Distributions: what they are refused for, and what the draws give.

use super::*;

const SIZES: [(usize, u32); 8] =
    [(4, 256), (8, 256), (16, 256), (32, 256), (16, 2), (32, 2), (64, 2), (128, 2)];

#[test]
fn each_draw_gives_the_least_degree_whose_cumulated_share_is_above_it() {
    let degrees = Degrees::new(&[0.0, 1.0, 0.0, 2.0, 1.0, 0.0]).expect("weights");
    assert_eq!(degrees.sample(0), 2);
    assert_eq!(degrees.sample((1 << 30) - 1), 2);
    assert_eq!(degrees.sample(1 << 30), 4);
    assert_eq!(degrees.sample(3 << 30), 5);
    assert_eq!(degrees.sample(u32::MAX), 5);
    assert_eq!((degrees.mean(), degrees.max()), (3.75, 5));
    assert_eq!(degrees.iter().collect::<Vec<_>>(), [(2, 0.25), (4, 0.5), (5, 0.25)]);
}

#[test]
fn what_is_rarer_than_a_draw_does_not_occur() {
    let degrees = Degrees::new(&[1e-12, 1.0, 1e-12]).expect("weights");
    assert_eq!((degrees.sample(0), degrees.sample(u32::MAX)), (2, 2));
}

#[test]
fn rounding_leaves_no_draw_without_a_degree() {
    for count in 1..200 {
        let degrees = Degrees::new(&vec![0.1; count]).expect("weights");
        assert_eq!((degrees.sample(0), degrees.sample(u32::MAX)), (1, count));
    }
}

#[test]
fn what_is_no_distribution_is_refused() {
    assert_eq!(Degrees::new(&[]), Err(Error::Empty));
    assert_eq!(Degrees::new(&[0.0, 0.0]), Err(Error::Empty));
    assert_eq!(Degrees::new(&[0.5, -1.0]), Err(Error::Probability { index: 1, found: -1.0 }));
    assert!(matches!(Degrees::new(&[f64::INFINITY]), Err(Error::Probability { index: 0, .. })));
}

#[test]
fn every_size_of_the_rfc_has_a_table_and_no_other() {
    for (batch, q) in SIZES {
        let degrees = Degrees::table(batch, q).expect("a table");
        assert!(degrees.mean() > batch as f64 && degrees.max() >= 5 * batch, "{batch} {q}");
        // Below M, more than the degree's rank is never of use; the program wastes next to nothing there.
        let small: f64 =
            degrees.iter().filter(|(degree, _)| degree * 2 < batch).map(|(_, share)| share).sum();
        assert!(small < 0.001, "{batch} {q}: {small}");
    }
    assert_eq!(Degrees::table(64, 256), None);
    assert_eq!(Degrees::table(16, 16), None);
    assert_eq!(super::tables::TABLES.len(), SIZES.len());
}

#[test]
fn the_tables_shares_sum_to_one() {
    for table in &super::tables::TABLES {
        let sum: f64 = table.degrees.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{} {}: {sum}", table.batch, table.q);
        assert!(table.degrees.is_sorted_by(|(one, _), (next, _)| one < next), "{} {}", table.batch, table.q);
    }
}
