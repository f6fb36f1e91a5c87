#pragma once

namespace ringbolt::tools {

/// Opens descriptors 0 to 2 where they are closed, before anything else can get their numbers: what is printed must not
/// land in a file that happens to be opened as 1. The wrong way round (0 can't be read, 1 can't be written): a read or
/// a write fails as with a closed one, and is reported. Standard error takes everything: nobody could be told.
void open_standard_descriptors();

/// For a program that this process becomes: what open_standard_descriptors() has opened is /dev/null both ways, as
/// launchers do. Async-signal-safe.
void mend_standard_descriptors();

}  // namespace ringbolt::tools
