#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ringbolt::cluster {

/// The file that all processes of a cluster share: for every cable whether it is up, and a count of changes.
/// Layout in bytes: 0 magic "RBCTL1\0\0", 8 version, 12 cables, 16 generation, 20 + 4 i cable i (1 up, 0 cut); all
/// but the magic are u32. Writers: `ringbolt cut`, `heal` and `fault`, which then tell every reader to look again, and
/// `agent --start`.
///
/// The file is not mapped: whoever may write to it could end a process that maps it by making it shorter. Asking for a
/// cable reads memory of this process' own, as of the last refresh. Thread-safe; of several processes one at a time may
/// write.
class ControlPage {
 public:
  /// Makes the file `path` (mode 0600), all cables up, and opens it. Throws base::Error: EEXIST if there is one.
  static ControlPage create(const std::string& path, uint32_t n_cables);
  /// Opens an existing file for reading, and reads it. Throws base::Error if its size, magic or count are not those of
  /// a control page.
  static ControlPage open(const std::string& path);

  ControlPage();
  ControlPage(ControlPage&&) noexcept;
  ControlPage& operator=(ControlPage&&) noexcept;
  ~ControlPage();

  /// False for a page made by the default constructor or moved from. On such a page cable_up() says false,
  /// generation() 0 and refresh() does nothing; announce() and set_cable() must not be called.
  bool is_open() const { return content_ != nullptr; }
  uint32_t n_cables() const { return n_cables_; }
  /// Whether cable `cable` carries data. A cable that does not exist is not up. No system call. Acquires what
  /// refresh() has stored, so that a caller that saw a new generation() sees the cables that came with it or newer
  /// ones.
  bool cable_up(uint32_t cable) const;
  /// Counts changes (wraps), as of the last refresh.
  uint32_t generation() const;
  /// Reads the file again. Whatever a file that was cut short, or is no control page any more, does not hold is cut.
  void refresh() const;
  /// Something else of the cluster has changed, which programs should look at: bumps the generation. Throws as
  /// set_cable.
  void announce();
  /// Sets a cable in the file and, if that changed it, bumps the generation after. The file is open for writing only
  /// meanwhile. Returns whether it changed. Throws base::Error if the file can't be written, is no control page any
  /// more, or another one has its name.
  bool set_cable(uint32_t cable, bool is_up);

 private:
  struct Content;
  /// `content` must not be null: its number of cables is the page's for good.
  explicit ControlPage(std::unique_ptr<Content> content);
  /// The file's words; throws if it is no longer the page that was opened.
  std::vector<uint32_t> read_whole() const;

  std::unique_ptr<Content> content_;  // on the heap: a mutex and atomics can't move, but the page may
  uint32_t n_cables_ = 0;             // as checked when opened: a later scribble over the file can't widen our reach
};

}  // namespace ringbolt::cluster
