#pragma once

namespace ringbolt::device {

/// From now on refusals of a profile's machine are (true), or are no more (false), what callers on this thread ask for
/// to find out what it can do: they are returned as ever and not told of. Calls nest. Never blocks.
void expect_refusals(bool is_asked_for);
bool are_refusals_expected();

}  // namespace ringbolt::device
