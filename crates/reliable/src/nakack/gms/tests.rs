//! Of changes of views.
