// From the initramfs to the host's file tree: modules, mounts, the port to the host.
#pragma once

namespace ringbolt::guest {

/// Loads the modules that /modules/order lists, mounts the host's files read-only as the root (memory file systems on
/// /dev, /tmp, /run), and opens the virtio-serial port. Returns its descriptor. Ends the guest with a message when a
/// step fails.
int set_up();

}  // namespace ringbolt::guest
