#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "device/port.h"
#include "profile/frames.h"

/// Depths and messages of devices that count in frames of 4 KiB.
namespace ringbolt::device {

/// What the observed driver returns: a negated errno, and the program's pointer is left as it was.
inline constexpr int kFramesExceeded = -ENOMEM;

inline uint64_t length_of_pieces(const ibv_sge* pieces, int count) {
  uint64_t length = 0;
  for (int i = 0; i < count; ++i) {
    length += pieces[i].length;
  }
  return length;
}

/// Of a message or a receive of these pieces, each of which is one of its own if `are_parted`.
inline uint32_t frames_of_pieces(const ibv_sge* pieces, int count, bool are_parted) {
  if (!are_parted) {
    return profile::frames_of(length_of_pieces(pieces, count));
  }
  uint32_t frames = count == 0 ? 1 : 0;
  for (int i = 0; i < count; ++i) {
    frames += profile::frames_of(pieces[i].length);
  }
  return frames;
}

/// Of `granted` frames as many can be posted.
inline uint32_t postable_frames(const Port& port, uint32_t granted) {
  return granted - std::min(granted, port.profile.knobs.short_grant_frames);
}

}  // namespace ringbolt::device
