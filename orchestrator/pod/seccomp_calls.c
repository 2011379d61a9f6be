/* System calls by name, of x86_64 and aarch64: one that a machine does not have is passed over when its filter is made. A call that
 * is in no list here does not exist in a container. */
#include "orchestrator/pod/seccomp_calls.h"

#include <stddef.h>

const char *const seccomp_allowed[] = {
	/* memory */
	"brk", "mmap", "mprotect", "mremap", "munmap", "msync", "mincore", "madvise", "mlock", "mlock2", "mlockall",
	"munlock", "munlockall", "membarrier", "memfd_create", "remap_file_pages", "mseal", "pkey_alloc", "pkey_free",
	"pkey_mprotect",
	/* files: open ones */
	"open", "openat", "openat2", "creat", "close", "close_range", "read", "readv", "pread64", "preadv", "preadv2",
	"write", "writev", "pwrite64", "pwritev", "pwritev2", "lseek", "dup", "dup2", "dup3", "fcntl", "flock", "ioctl",
	"pipe", "pipe2", "sendfile", "splice", "tee", "vmsplice", "copy_file_range", "fadvise64", "readahead",
	"fallocate", "ftruncate", "truncate", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "cachestat",
	"getdents", "getdents64",
	/* files: names */
	"access", "faccessat", "faccessat2", "stat", "lstat", "fstat", "newfstatat", "statx", "statfs", "fstatfs",
	"chdir", "fchdir", "getcwd", "mkdir", "mkdirat", "rmdir", "rename", "renameat", "renameat2", "link", "linkat",
	"symlink", "symlinkat", "readlink", "readlinkat", "unlink", "unlinkat", "mknod",
	"mknodat", /* also for pipes with a name */
	"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "fchownat", "lchown", "umask", "utime", "utimes",
	"futimesat", "utimensat", "getxattr", "lgetxattr", "fgetxattr", "setxattr", "lsetxattr", "fsetxattr",
	"listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr", "inotify_init",
	"inotify_init1", "inotify_add_watch", "inotify_rm_watch",
	/* waiting */
	"poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old",
	"epoll_wait", "epoll_wait_old", "epoll_pwait", "epoll_pwait2", "eventfd",
	"eventfd2", /* processes; clone has rules of its own */
	"fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "getpid", "getppid", "gettid",
	"getpgid", "getpgrp", "setpgid", "getsid", "setsid", "pidfd_open", "pidfd_send_signal", "prctl", "arch_prctl",
	"set_tid_address", "futex", "futex_waitv", "futex_wake", "futex_wait", "futex_requeue", "set_robust_list",
	"get_robust_list", "rseq", "restart_syscall", "pause", "seccomp", "landlock_create_ruleset",
	"landlock_add_rule", "landlock_restrict_self",
	/* signals */
	"kill", "tkill", "tgkill", "rt_sigaction", "rt_sigprocmask", "rt_sigpending", "rt_sigsuspend",
	"rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "rt_sigreturn", "sigaltstack", "signalfd",
	"signalfd4",
	/* time */
	"time", "gettimeofday", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "alarm", "getitimer",
	"setitimer", "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete",
	"timerfd_create", "timerfd_settime", "timerfd_gettime", "times",
	/* processors and bounds */
	"sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_setparam",
	"sched_getscheduler", "sched_setscheduler", "sched_getattr", "sched_setattr", "sched_get_priority_max",
	"sched_get_priority_min", "sched_rr_get_interval", "getcpu", "getpriority", "setpriority", "ioprio_get",
	"ioprio_set", "getrlimit", "setrlimit", "prlimit64", "getrusage",
	/* who and where; without a capability nobody else can be become */
	"getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "setuid", "setgid", "setreuid",
	"setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid", "capget", "capset", "uname",
	"sysinfo", "getrandom",
	/* sockets; socket, socketpair and setsockopt have rules of their own */
	"bind", "connect", "listen", "accept", "accept4", "getsockname", "getpeername", "getsockopt", "sendto",
	"recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "shutdown",
	/* between the processes of a container, which has an IPC namespace of its own */
	"shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv",
	"msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", NULL};

const char *const seccomp_refused[] = {
	/* namespaces and mounts */
	"unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
	"fsmount", "fsconfig", "fspick", "mount_setattr",
	/* into the kernel */
	"bpf", "perf_event_open", "keyctl", "add_key", "request_key", "userfaultfd", "init_module", "finit_module",
	"delete_module", "kexec_load", "kexec_file_load", "iopl", "ioperm", "modify_ldt", "vm86", "vm86old",
	/* into other processes */
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp", "move_pages",
	"migrate_pages",
	/* around names */
	"name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark", "lookup_dcookie",
	/* of the whole machine */
	"reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "settimeofday", "clock_settime",
	"clock_adjtime", "adjtimex", "sethostname", "setdomainname", "vhangup", NULL};
