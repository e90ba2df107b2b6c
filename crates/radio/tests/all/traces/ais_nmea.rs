//! AIS in sentences of NMEA 0183.

use super::*;

/// Real reports, with what other decoders make of them (gpsd's `sample.aivdm`, checked there with two others).
const REAL: [(&str, &str, f64, f64, Option<f64>); 4] = [
    (
        "!AIVDM,1,1,,A,15RTgt0PAso;90TKcjM8h6g208CQ,0*4A",
        "371798000",
        48.381_633_33,
        -123.395_383_33,
        Some(215.0),
    ),
    ("!AIVDM,1,1,,A,16SteH0P00Jt63hHaa6SagvJ087r,0*42", "440348000", 43.080_15, -70.7582, None),
    (
        "!AIVDM,1,1,,A,B6CdCm0t3`tba35f@V9faHi7kP06,0*58",
        "423302100",
        40.005_283_33,
        53.010_996_67,
        Some(177.0),
    ),
    (
        "!AIVDM,1,1,,A,B52IRsP005=abWRnlQP03w`UkP06,0*2A",
        "338060014",
        11_981_336.0 / 6e5,
        -93_506_225.0 / 6e5,
        None,
    ),
];

#[test]
fn real_reports_are_read_as_others_read_them() {
    for (sentence, mmsi, latitude, longitude, heading) in REAL {
        let traces = read(Format::AisNmea, &timed(sentence, 1_700_000_000));
        assert_eq!(names(&traces), [mmsi]);
        near(at(&traces, mmsi, 0.0), globe(latitude, longitude), 0.01);
        assert_eq!(traces.tracks[mmsi].at(Instant::ZERO).heading, heading.unwrap_or(0.0), "{mmsi}");
    }
}

#[test]
fn times_stand_in_tag_blocks_or_behind_the_sentence() {
    let [first, ..] = REAL;
    // Of the Norwegian coast's receivers, with its own checksums.
    let norway = r"\s:42,c:1567684904*38\!AIVDM,1,1,,A,B3m:H900AP@b:79ae6:<OwnUoP06,0*78";
    let text = [
        norway.to_owned(),
        format!("{},r003669945,1567684910", first.0),
        timed(first.0, 1_567_684_914_500),
        "$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47".to_owned(),
        "# a comment".to_owned(),
        "!AIVDM,2,1,1,A,55?MbV02;H;s<HtKR20EHE:0@T4@Dn2222222216L961O5Gf0NSQEp6ClRp8,0*1C".to_owned(),
        "!AIVDM,2,2,1,A,88888888880,2*25".to_owned(),
        "!AIVDM,1,1,,A,H42O55i18tMET00000000000000,2*6D".to_owned(),
    ];
    let traces = read(Format::AisNmea, &text.join("\r\n"));
    assert_eq!(traces.ignored, 4);
    assert_eq!(traces.tracks.len(), 2);
    let track = &traces.tracks["371798000"];
    assert_eq!((track.begins(), track.ends()), (seconds(6.0), seconds(10.5)));
}

#[test]
fn mistakes_have_their_place() {
    let [(sentence, ..), ..] = REAL;
    let armour = summed("AIVDM,1,1,,A,15RTgt0PAso;9XTKcjM8h6g208CQ,0");
    for (text, expected) in [
        ("hello".to_owned(), "file:1:1: expected a sentence of NMEA, which begins with `!` or `$`"),
        (timed(&sentence.replace("4A", "4B"), 5), "file:1:54: expected the checksum 4A, found `4B`"),
        (sentence.replace("*4A", ""), "file:1:45: expected a checksum, `*` and two digits, found the end"),
        (sentence.replace("*4A", "*+A"), "file:1:46: expected the checksum 4A, found `+A`"),
        (sentence.replace("*4A", "*é"), "file:1:46: expected the checksum 4A, found `é`"),
        (sentence.to_owned(), "file:1:1: expected a time with each report: "),
        (format!("!{armour}"), "file:1:28: expected the characters of six-bit armour"),
        (
            format!("!{}", summed("AIVDM,1,1,,A,15RTgt0PAso,0")),
            "file:1:26: expected a whole message, found 66 bits",
        ),
        (
            format!("!{}", summed("AIVDM,1,1,,A")),
            "file:1:2: expected the payload, found the end of the sentence",
        ),
        (format!("!{}", summed("AIVDM,x,1,,A,1,0")), "file:1:8: expected the number of parts, found `x`"),
        (format!("\\c:5{sentence}"), "file:1:1: expected a tag block to end with `\\`"),
        (format!("\\c:x*00\\{sentence}"), "file:1:6: expected the checksum "),
        (format!("\\{}\\{sentence}", summed("c:x")), "file:1:4: expected seconds since 1970, found `x`"),
        (
            format!("\\{}\\{sentence}", summed("c:1e300")),
            "file:1:4: expected a time from 1900 to 2199, found `1e300`",
        ),
        ("$GPGGA,1*4B".to_owned(), "file: expected the positions of at least one ship, found none"),
    ] {
        let error = error(Format::AisNmea, &text);
        assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
    }
}

/// A report in bits, by the tables of ITU-R M.1371, and in six-bit armour.
fn encode(kind: u8, mmsi: u32, latitude: i32, longitude: i32, heading: u16) -> String {
    let mut bits = Vec::new();
    let mut push = |value: u64, length: u32| bits.extend((0..length).rev().map(|bit| value >> bit & 1 == 1));
    let cut = |value: i32, length: u32| u64::from(value as u32) & ((1 << length) - 1);
    push(kind.into(), 6);
    push(0, 2);
    push(mmsi.into(), 30);
    // Status, rate of turn, speed and accuracy; or reserved, speed and accuracy.
    push(0, if kind == 18 { 19 } else { 23 });
    push(cut(longitude, 28), 28);
    push(cut(latitude, 27), 27);
    push(0, 12);
    push(heading.into(), 9);
    bits.resize(168, false);
    let armour = |six: &[bool]| {
        let value = six.iter().fold(0, |value, &bit| value << 1 | u8::from(bit));
        char::from(if value < 40 { value + 48 } else { value + 56 })
    };
    bits.chunks(6).map(armour).collect()
}

#[test]
fn a_ship_that_does_not_know_where_it_is_is_counted() {
    let sentence = |payload: &str| timed(&format!("!{}", summed(&format!("AIVDM,1,1,,A,{payload},0"))), 100);
    let unknown = sentence(&encode(1, 7, 91 * 600_000, 181 * 600_000, 511));
    let known = sentence(&encode(18, 8, 0, 0, 511));
    let traces = read(Format::AisNmea, &format!("{unknown}\n{known}"));
    assert_eq!((names(&traces), traces.ignored), (vec!["8"], 1));
    let beyond = sentence(&encode(1, 7, 95 * 600_000, 0, 0));
    assert!(error(Format::AisNmea, &beyond).contains("expected a latitude from -90 to 90 degrees, found 95"));
}

proptest! {
    #[test]
    fn what_was_encoded_is_read(
        kind in prop::sample::select(vec![1u8, 2, 3, 18]), mmsi in 0u32..1 << 30, latitude in -54_000_000i32..=54_000_000,
        longitude in -108_000_000i32..108_000_000, heading in 0u16..512,
    ) {
        let body = format!("AIVDM,1,1,,B,{},0", encode(kind, mmsi, latitude, longitude, heading));
        let traces = read(Format::AisNmea, &timed(&format!("!{}", summed(&body)), 9));
        let fix = traces.tracks[&mmsi.to_string()].at(Instant::ZERO);
        let expected = globe(f64::from(latitude) / 6e5, f64::from(longitude) / 6e5);
        prop_assert_eq!(fix.position, expected);
        prop_assert_eq!(fix.heading, if heading < 360 { f64::from(heading) } else { 0.0 });
    }
}

/// `body` with its checksum.
fn summed(body: &str) -> String {
    format!("{body}*{:02X}", body.bytes().fold(0, |sum, byte| sum ^ byte))
}

/// A sentence with a tag block of its time.
fn timed(sentence: &str, seconds: u64) -> String {
    format!("\\{}\\{sentence}", summed(&format!("c:{seconds}")))
}
