#pragma once

// What a lock guards, in words that clang's -Wthread-safety checks. To other compilers they say nothing.

#ifdef __clang__
#define RINGBOLT_THREAD_SAFETY(x) __attribute__((x))
#else
#define RINGBOLT_THREAD_SAFETY(x)
#endif

/// A class that is a lock, and one that holds a lock as long as it lives.
#define RINGBOLT_CAPABILITY(kind) RINGBOLT_THREAD_SAFETY(capability(kind))
#define RINGBOLT_SCOPED_CAPABILITY RINGBOLT_THREAD_SAFETY(scoped_lockable)

/// A field that is only touched with the lock held, or what a pointer points to.
#define RINGBOLT_GUARDED_BY(lock) RINGBOLT_THREAD_SAFETY(guarded_by(lock))
#define RINGBOLT_PT_GUARDED_BY(lock) RINGBOLT_THREAD_SAFETY(pt_guarded_by(lock))

/// A lock that the analysis knows by this role alone.
#define RINGBOLT_HELD_AS(role)

/// The order of locks: this one is taken while those are held, or the other way round; never else.
#define RINGBOLT_ACQUIRED_AFTER(...) RINGBOLT_THREAD_SAFETY(acquired_after(__VA_ARGS__))
#define RINGBOLT_ACQUIRED_BEFORE(...) RINGBOLT_THREAD_SAFETY(acquired_before(__VA_ARGS__))

/// A function that is called with the locks held, or that takes them itself.
#define RINGBOLT_REQUIRES(...) RINGBOLT_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define RINGBOLT_REQUIRES_SHARED(...) RINGBOLT_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
#define RINGBOLT_EXCLUDES(...) RINGBOLT_THREAD_SAFETY(locks_excluded(__VA_ARGS__))

/// A function that returns with the locks held, or given back.
#define RINGBOLT_ACQUIRE(...) RINGBOLT_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define RINGBOLT_ACQUIRE_SHARED(...) RINGBOLT_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define RINGBOLT_TRY_ACQUIRE(...) RINGBOLT_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define RINGBOLT_RELEASE(...) RINGBOLT_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define RINGBOLT_RELEASE_SHARED(...) RINGBOLT_THREAD_SAFETY(release_shared_capability(__VA_ARGS__))
#define RINGBOLT_RELEASE_GENERIC(...) RINGBOLT_THREAD_SAFETY(release_generic_capability(__VA_ARGS__))

/// A function that returns a reference to the lock.
#define RINGBOLT_RETURNS_LOCK(lock) RINGBOLT_THREAD_SAFETY(lock_returned(lock))
/// From the call on the lock is taken to be held, for a reason that the analysis cannot see.
#define RINGBOLT_ASSERTS_HELD(...) RINGBOLT_THREAD_SAFETY(assert_capability(__VA_ARGS__))
/// A function that is right for a reason that the analysis cannot see: say it beside it.
#define RINGBOLT_NOT_ANALYSED RINGBOLT_THREAD_SAFETY(no_thread_safety_analysis)
