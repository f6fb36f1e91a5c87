#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

/// Reading lines of words, as the small files have them that processes share. All thread-safe.
namespace ringbolt::base {

/// Takes the text up to `end`, and `end` itself, off the front. The views point into the caller's text. Where `end`
/// does not occur, all of it is taken.
inline std::string_view take_until(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return taken;
}

/// Takes the next word as a decimal number. False: it is none, or too large. On false `number` may have been written,
/// and the word is gone from `text` all the same.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const std::string_view field = take_until(text, ' ');
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  return error == std::errc{} && end == field.data() + field.size();
}

}  // namespace ringbolt::base
