//! References to the publication that a scenario repeats and to the program that ran it, for a reader and as BibTeX.

use std::fmt::Write as _;

use hopcast_twin::results::{Document, Publication};
use serde_json::Value;

/// A publication in one line: `A. Author and B. Author, “Title”, Venue, 2024, section 3. URL`.
pub(crate) fn reference(source: &Publication) -> String {
    let Publication { authors, title, year, section, venue, url } = source;
    let mut text = match authors.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}, ", most.join(", ")),
        authors => authors.iter().map(|author| format!("{author}, ")).collect(),
    };
    let _ = write!(text, "“{title}”");
    for part in venue.iter().chain([&year.to_string()]).chain(section) {
        let _ = write!(text, ", {part}");
    }
    text.push('.');
    if let Some(url) = url {
        let _ = write!(text, " {url}");
    }
    text
}

/// BibTeX entries for the publication, if there is one, and for this version of the program.
pub(crate) fn bibtex(document: &Document, manifest: &Value) -> String {
    let mut out = String::new();
    if let Some(source) = &document.source {
        let Publication { authors, title, year, section, venue, url } = source;
        let fields = [
            ("author", Some(authors.join(" and "))),
            ("title", Some(title.clone())),
            ("howpublished", venue.clone()),
            ("year", Some(year.to_string())),
            ("note", section.clone()),
            ("url", url.clone()),
        ];
        entry(&mut out, "misc", &key(source), &fields);
    }
    let version = manifest.get("hopcast").and_then(Value::as_str).unwrap_or(env!("CARGO_PKG_VERSION"));
    let sources = manifest.get("sources").and_then(Value::as_str).map(|sources| format!("sources {sources}"));
    let fields = [
        ("author", Some("{The hopcast authors}".to_owned())),
        ("title", Some("hopcast".to_owned())),
        ("version", Some(version.to_owned())),
        ("note", sources),
    ];
    entry(&mut out, "software", "hopcast", &fields);
    out
}

fn entry(out: &mut String, kind: &str, key: &str, fields: &[(&str, Option<String>)]) {
    let _ = writeln!(out, "@{kind}{{{key},");
    for (name, value) in fields {
        if let Some(value) = value {
            let braced = if *name == "title" { format!("{{{}}}", quoted(value)) } else { quoted(value) };
            let _ = writeln!(out, "  {name} = {{{braced}}},");
        }
    }
    out.push_str("}\n");
}

/// Escapes characters that are commands of TeX; braces stay, since they keep a name whole.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash "),
            '%' | '&' | '$' | '#' | '_' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// The first author's last name and the year: `yang2024`.
fn key(source: &Publication) -> String {
    let author = source.authors.first().map_or("", |author| author.rsplit(' ').next().unwrap_or(author));
    let letters = author.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase());
    letters.chain(source.year.to_string().chars()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source() -> Publication {
        Publication {
            authors: vec!["Ann Author".into(), "Bo van Writer".into(), "Cy Penn".into()],
            title: "Loss & delay at 5 %".into(),
            year: 2014,
            section: Some("figure 3".into()),
            venue: Some("Proceedings".into()),
            url: None,
        }
    }

    #[test]
    fn a_reference_names_authors_title_venue_year_and_section() {
        assert_eq!(
            reference(&source()),
            "Ann Author, Bo van Writer and Cy Penn, “Loss & delay at 5 %”, Proceedings, 2014, figure 3."
        );
        let one = Publication {
            authors: vec!["Ann Author".into()],
            url: Some("https://x.example".into()),
            ..source()
        };
        assert!(reference(&one).starts_with("Ann Author, “Loss"));
        assert!(reference(&one).ends_with("figure 3. https://x.example"));
    }

    #[test]
    fn bibtex_has_the_publication_and_the_program_with_tex_made_text() {
        let document = Document { source: Some(source()), ..Document::default() };
        assert_eq!(
            bibtex(&document, &json!({ "hopcast": "1.2", "sources": "ab_c" })),
            "@misc{author2014,\n  author = {Ann Author and Bo van Writer and Cy Penn},\n  title = {{Loss \\& delay at 5 \\%}},\n  \
             howpublished = {Proceedings},\n  year = {2014},\n  note = {figure 3},\n}\n\
             @software{hopcast,\n  author = {{The hopcast authors}},\n  title = {{hopcast}},\n  version = {1.2},\n  \
             note = {sources ab\\_c},\n}\n"
        );
        assert!(!bibtex(&Document::default(), &Value::Null).contains("@misc"));
    }
}
