#pragma once

#include <termios.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace ringbolt::tools::map {

/// What ended a wait.
enum class Wish { kGoOn, kRedraw, kQuit };

/// Signals and keys of a program that shows something until it is told to stop: SIGINT, SIGTERM, SIGHUP, and on a
/// terminal the keys q and Ctrl-C. Blocks these signals for good; one per process. Not thread-safe.
class Keys {
 public:
  /// `has_keys`: standard input is the terminal's.
  explicit Keys(bool has_keys);
  /// Until `deadline_ns`, or what comes before. A size that changed asks for a redraw, and so does a program that was
  /// stopped and goes on. `suspended` is called before it stops, `resumed` after.
  template <class Suspended, class Resumed>
  Wish wait(uint64_t deadline_ns, const Suspended& suspended, const Resumed& resumed) {
    const int event = next(deadline_ns);
    if (event == kStop) {
      suspended();
      stop();
      resumed();
      return Wish::kRedraw;
    }
    return event == 0 ? Wish::kGoOn : event == kRedraw ? Wish::kRedraw : Wish::kQuit;
  }

  /// The signal that ended the last wait; 0: none did.
  int signal() const { return signal_; }

 private:
  static constexpr int kStop = 1;
  static constexpr int kRedraw = 2;
  static constexpr int kQuit = 3;
  int next(uint64_t deadline_ns);
  static void stop();

  base::UniqueFd signals_;
  bool has_keys_;
  int signal_ = 0;
};

/// The terminal while a picture is on it: another page, no cursor, keys at once and unseen. Destroying it gives the
/// terminal back as it was. Not thread-safe.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void enter();
  void leave();
  /// Draws the text over what was there, as much of it as fits.
  void show(const std::string& text);

 private:
  bool is_entered_ = false;
  std::optional<termios> before_;  // none: input is no terminal
};

}  // namespace ringbolt::tools::map
