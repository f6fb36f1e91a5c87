#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringbolt::tools {

/// `text` in lines of up to `width` columns. Lines that follow each other are one paragraph and are filled; those that
/// begin with a space (examples) stay as they are, as does a word that is too long. Every line but the first is
/// indented by `indent` columns, and the first is taken to begin there. No newline at the end. Thread-safe.
std::string wrapped(std::string_view text, size_t width, size_t indent = 0);

/// The beginning of `text`, UTF-8 whose letters take a column each, that fits into `columns`: whole letters.
/// Thread-safe.
std::string_view first_columns(std::string_view text, size_t columns);

/// Columns of the terminal that standard output is: COLUMNS if that is a number, else as the terminal says, else 80.
size_t terminal_columns();

}  // namespace ringbolt::tools
