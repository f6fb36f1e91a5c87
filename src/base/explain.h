#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/calling_place.h"

/// What goes wrong, in words, for programs that are started with RINGBOLT_EXPLAIN: `on` writes to standard error, a
/// path to that file, `json` and `json:PATH` a line of JSON each (docs/errors.md). Without it none of this costs more
/// than a look at a constant, where something fails anyway.
namespace ringbolt::base {

struct Explanation {
  std::string why;  ///< what the device saw, with the numbers
  std::string fix;
  std::string peer{};  ///< what the other side knows; may be empty
};

/// Something that went wrong: a call that was refused, a request that failed, a message that was dropped.
struct Incident {
  std::string call{};                 ///< "ibv_modify_qp", "IBV_WR_SEND", "datagram"
  std::string object{};               ///< "queue pair 0x84011"; may be empty
  std::string detail{};               ///< of this one among many alike: "wr_id 7"; may be empty
  int error = 0;                      ///< an errno, or
  std::string status{};               ///< "IBV_WC_REM_ACCESS_ERR (remote access error)"
  CallSite posted{};                  ///< of a request: where it was posted. Not known, and no errno: no place is told
  bool is_call = false;               ///< `posted` is where the program is, in `call`
  std::vector<std::string> events{};  ///< what happened to the object before, for JSON
};

/// Whether anybody wants to know. The environment is read once. Thread-safe.
bool is_explaining() noexcept;

/// Says why a call in this thread is refused, once a second at most for the same words. Thread-safe.
void explain(int error, std::string_view call, const Explanation& explanation) noexcept;
/// The same of anything; once a second at most for what differs in `detail` and numbers alone.
void explain(const Incident& incident, const Explanation& explanation) noexcept;

/// Is told what is explained, and of which object, and answers what happened there last, for the line of JSON; a text
/// has room for where to look it up (four lines are enough) if there is anything. May throw std::bad_alloc.
using ExplanationWitness = std::vector<std::string> (*)(std::string_view object, std::string_view text);
/// One a process. Thread-safe. Is called by any thread that explains, without a lock of this file's, and so must be
/// thread-safe itself and must not explain.
void set_explanation_witness(ExplanationWitness witness) noexcept;

/// The text of it, four lines at most. `place`: as place_of() gives it. `held_back`: how many alike were not told.
std::string explanation_text(const Incident& incident, const Explanation& explanation, std::string_view place,
                             uint64_t held_back = 0);
/// The same as a line of JSON.
std::string explanation_json(const Incident& incident, const Explanation& explanation, std::string_view place,
                             uint64_t held_back = 0);

/// `error`, which `call` answers, is explained if somebody wants to know: `words` makes the Explanation only then.
/// Keeps errno. Returns `error`, whatever becomes of the words.
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

/// Something else went wrong: `tell` calls explain() with it, only if somebody wants to know, and may throw.
template <class Tell>
void when_explaining(Tell&& tell) noexcept {
  if (is_explaining()) [[unlikely]] {
    try {
      tell();
    } catch (...) {  // no memory for words
    }
  }
}

}  // namespace ringbolt::base
