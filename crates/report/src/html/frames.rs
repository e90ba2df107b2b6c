//! Frames of a video that a real program streamed: as they were sent, and as they arrived over each transport.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hopcast_twin::results::Document;

use crate::plot::canvas::escape;
use crate::study::{Study, value};

/// Maximum size of all pictures on the page, in bytes; further ones are in the run directory only. Chosen: a larger
/// page is slow to open and to send.
const MAX_BYTES: usize = 8 << 20;

/// A picture as a `data:` URI, with its labels.
struct Shown {
    /// The case, without the transport.
    case: String,
    protocol: String,
    number: u64,
    sent: String,
    received: Option<String>,
}

/// The section, with the pictures that the run directory has; empty if there are none.
pub(crate) fn frames(study: &Study<'_>, dir: Option<&Path>) -> String {
    let Some(dir) = dir else { return String::new() };
    let shown = load(study.document, study, dir);
    if shown.is_empty() {
        return String::new();
    }
    let mut out =
        String::from("<section id=\"frames\">\n<div class=\"head\"><h2>The frames that arrived</h2></div>\n");
    let cases = crate::study::distinct(shown.iter().map(|frame| frame.case.clone()));
    for case in cases {
        let of_case: Vec<&Shown> = shown.iter().filter(|frame| frame.case == case).collect();
        let protocols = crate::study::distinct(of_case.iter().map(|frame| frame.protocol.as_str()));
        let numbers = crate::study::distinct(of_case.iter().map(|frame| frame.number));
        let _ = write!(
            out,
            "<div class=\"scroll\"><table class=\"frames\"><caption>{}</caption><thead><tr><th>frame</th><th>sent</th>",
            escape(&case)
        );
        for protocol in &protocols {
            let _ = write!(out, "<th>{}</th>", escape(protocol));
        }
        out.push_str("</tr></thead><tbody>\n");
        for number in numbers {
            let row: Vec<&&Shown> = of_case.iter().filter(|frame| frame.number == number).collect();
            let sent = row.first().map_or("", |frame| frame.sent.as_str());
            let _ = write!(
                out,
                "<tr><th>{number}</th><td><img alt=\"frame {number} as sent\" src=\"{sent}\"></td>"
            );
            for protocol in &protocols {
                let received = row.iter().find(|frame| frame.protocol == *protocol);
                match received.and_then(|frame| frame.received.as_deref()) {
                    Some(image) => {
                        let alt = format!("frame {number} over {protocol}");
                        let _ = write!(out, "<td><img alt=\"{}\" src=\"{image}\"></td>", escape(&alt));
                    }
                    None => out.push_str("<td class=\"missing\">nothing arrived</td>"),
                }
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }
    out.push_str("</section>\n");
    out
}

/// The pictures of the first repeat of each case.
fn load(document: &Document, study: &Study<'_>, dir: &Path) -> Vec<Shown> {
    let mut bytes = 0;
    let mut shown = Vec::new();
    for run in document.runs.iter().filter(|run| run.repeat == 0) {
        let Some(live) = run.live.as_ref().filter(|live| live.invalid.is_none()) else { continue };
        for frame in &live.pictures {
            let Some(flow) = run.flows.iter().find(|flow| flow.name == frame.flow) else { continue };
            if frame.pictures().count() < 1 + usize::from(frame.received.is_some()) {
                continue;
            }
            let mut image = |path: &String| -> Option<String> {
                let png = fs::read(dir.join(path)).ok()?;
                bytes += png.len();
                (bytes <= MAX_BYTES).then(|| format!("data:image/png;base64,{}", STANDARD.encode(png)))
            };
            let Some(sent) = image(&frame.sent) else { continue };
            let received = match &frame.received {
                None => None,
                // A picture that cannot be read must not look like a frame that did not arrive.
                Some(path) => match image(path) {
                    Some(image) => Some(image),
                    None => continue,
                },
            };
            let settings = study.varying.iter().filter(|path| value(&run.parameters, path) != flow.protocol);
            let settings =
                settings.map(|path| format!("{} {}", study.short_name(path), value(&run.parameters, path)));
            let of_flow = (run.flows.len() > 1).then(|| flow.name.clone());
            let case = settings.chain(of_flow).collect::<Vec<_>>().join(", ");
            shown.push(Shown { case, protocol: flow.protocol.clone(), number: frame.number, sent, received });
        }
    }
    shown
}
