#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace ringbolt::base {

/// Why a text was refused. `line` counts from 1; 0 means the text as a whole.
struct ParseError {
  size_t line = 0;
  std::string problem;

  /// "line 3: <problem>", or the problem alone.
  std::string text() const { return line == 0 ? problem : "line " + std::to_string(line) + ": " + problem; }
  friend bool operator==(const ParseError&, const ParseError&) = default;
};

/// A value read from a text, or the reason why the text is not one.
template <class T>
using Parsed = tl::expected<T, ParseError>;

inline tl::unexpected<ParseError> refuse(size_t line, std::string problem) {
  return tl::unexpected<ParseError>(ParseError{line, std::move(problem)});
}

}  // namespace ringbolt::base
