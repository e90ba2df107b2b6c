//! The options of a row: each with its reader, how it is shown, and its documentation.

use hopcast_config::Diagnostic;
use hopcast_config::decode::Fields;
use hopcast_config::yaml::Node;

/// An option of a row whose settings are of type `S`.
pub struct Opt<S: 'static> {
    /// Its key.
    pub key: &'static str,
    /// One or two sentences: what it is, and what goes wrong each way.
    pub about: &'static str,
    /// The form of its values.
    pub form: Form,
    /// Reads the value into the settings. Options are read in the order of the table.
    pub set: fn(&mut S, &Node, &'static str) -> Result<(), Diagnostic>,
    /// The value as a person writes it.
    pub show: fn(&S) -> String,
}

/// The form of an option's values, for the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `500us`.
    Duration,
    /// `64 KiB`.
    Size,
    /// `10 Mbit/s`.
    Rate,
    /// `5 %`.
    Share,
    /// `150 %`: a share of at most so many percent.
    Percent(u64),
    /// A whole number.
    Count,
    /// A whole number up to this one, or one of these words.
    CountOr(u64, &'static [&'static str]),
    /// Whole numbers in this range, one or a list.
    Numbers(u64, u64),
    /// `on` or `off`.
    Flag,
    /// A word.
    Word,
    /// A list of words.
    Words,
    /// A word, or a list of words.
    Names,
    /// A prefix of addresses, or a list of one of each version of IP.
    Prefixes,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these numbers.
    OneNumberOf(&'static [u64]),
    /// A map of these keys, each a share, with one sentence on each.
    Shares(&'static [(&'static str, &'static str)]),
    /// The VLANs of a port of a bridge, and whether routers are behind it.
    Port,
    /// A map of interfaces or links, each with the same.
    Ports,
    /// A map of interfaces or links, each with a whole number in this range.
    PerInterface(u64, u64),
}

/// An option as documentation shows it.
#[derive(Clone, Debug)]
pub struct OptionDoc {
    /// Its key.
    pub key: &'static str,
    /// One or two sentences: what it is, and what goes wrong each way.
    pub about: &'static str,
    /// The form of its values.
    pub form: Form,
    /// The default, as a person writes it.
    pub default: String,
}

/// The options of a row.
pub struct Options<S: 'static>(pub &'static [Opt<S>]);

impl<S> Options<S> {
    /// The options as documentation shows them; `defaults` are the settings without any.
    pub fn docs(&self, defaults: &S) -> Vec<OptionDoc> {
        let doc = |option: &Opt<S>| OptionDoc {
            key: option.key,
            about: option.about,
            form: option.form,
            default: (option.show)(defaults),
        };
        self.0.iter().map(doc).collect()
    }

    /// The options whose value is another than in `usual`, each as `name value`.
    pub(crate) fn changed(&self, settings: &S, usual: &S) -> Vec<String> {
        let changed = |option: &Opt<S>| {
            let shown = (option.show)(settings);
            (shown != (option.show)(usual)).then(|| format!("{} {shown}", option.key))
        };
        self.0.iter().filter_map(changed).collect()
    }

    /// The settings of the transport or delivery `name` as a file has them: `defaults`, changed by the options that are
    /// there.
    ///
    /// # Errors
    /// A key that is none of the options, or a value that is not allowed.
    pub(crate) fn read(&self, name: &str, options: Option<&Node>, defaults: S) -> Result<S, Diagnostic> {
        let mut settings = defaults;
        let Some(options) = options else { return Ok(settings) };
        let what = format!("`{name}`");
        if self.0.is_empty() {
            return match hopcast_config::decode::entries(options, &what) {
                Ok([]) => Ok(settings),
                Ok(_) | Err(_) => Err(options.error(format!("`{name}` has no options: write `{name}`"))),
            };
        }
        let keys: Vec<&str> = self.0.iter().map(|option| option.key).collect();
        let fields = Fields::of(options, &what, &keys)?;
        for option in self.0 {
            if let Some(node) = fields.get(option.key) {
                (option.set)(&mut settings, node, option.key)?;
            }
        }
        Ok(settings)
    }
}
