#pragma once

#include <string>
#include <string_view>

/// Why a call was refused, in words, for programs that are started with RINGBOLT_EXPLAIN: `on` writes to standard
/// error, a path to that file. Without it none of this costs more than a look at a constant, where a call fails anyway.
namespace ringbolt::base {

struct Explanation {
  std::string why;  ///< what the device saw, with the numbers
  std::string fix;
};

/// Whether anybody wants to know. The environment is read once. Thread-safe.
bool is_explaining() noexcept;

/// Says it, once a second at most for the same words, with the place in the program that made the call. Thread-safe.
void explain(int error, std::string_view call, const Explanation& explanation) noexcept;

/// The text of it. `place`: of the call, as calling_place() gives it.
std::string explanation_text(int error, std::string_view call, const Explanation& explanation, std::string_view place);

/// `error`, which `call` answers, is explained if somebody wants to know: `words` makes the Explanation only then.
template <class Words>
int refused(int error, std::string_view call, Words&& words) noexcept {
  if (is_explaining()) [[unlikely]] {
    try {
      explain(error, call, words());
    } catch (...) {  // no memory for words: the error stands all the same
    }
  }
  return error;
}

}  // namespace ringbolt::base
