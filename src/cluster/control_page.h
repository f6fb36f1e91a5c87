#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ringbolt::cluster {

/// The memory that all processes of a cluster share: for every cable whether it is up, and a count of changes.
/// Layout in bytes: 0 magic "RBCTL1\0\0", 8 version, 12 cables, 16 generation, 20 + 4 i cable i (1 up, 0 cut); all
/// but the magic are u32. Writers: `ringbolt cut` and `heal`. Readers: every device, on its data path.
/// Thread-safe, also between processes.
class ControlPage {
 public:
  /// Makes the file `path` (mode 0600), all cables up, and maps it. Throws base::Error: EEXIST if there is one.
  static ControlPage create(const std::string& path, uint32_t n_cables);
  /// Maps an existing file. Throws base::Error if its size, magic or count are not those of a control page.
  static ControlPage open(const std::string& path);

  ControlPage() = default;
  ControlPage(ControlPage&& other) noexcept
      : words_(std::exchange(other.words_, nullptr)), n_cables_(std::exchange(other.n_cables_, 0)) {}
  ControlPage& operator=(ControlPage&& other) noexcept;
  ControlPage(const ControlPage&) = delete;
  ControlPage& operator=(const ControlPage&) = delete;
  ~ControlPage();

  bool is_mapped() const { return words_ != nullptr; }
  uint32_t n_cables() const { return n_cables_; }
  /// Whether cable `cable` carries data. A cable that does not exist is not up.
  bool cable_up(uint32_t cable) const;
  /// Counts changes (wraps). Read it again after acting on cables: no change means that nothing was missed.
  uint32_t generation() const;
  /// Sets a cable and, if that changed it, bumps the generation after. Returns whether it changed.
  bool set_cable(uint32_t cable, bool is_up);

 private:
  ControlPage(uint32_t* words, uint32_t n_cables) : words_(words), n_cables_(n_cables) {}

  uint32_t* words_ = nullptr;  // the mapping; owned
  uint32_t n_cables_ = 0;      // as checked when mapped: a later scribble over the file can't widen our reach
};

}  // namespace ringbolt::cluster
