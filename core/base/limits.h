/* Every bound of cage in one place. docs/operations.md lists what a user meets. */
#ifndef CAGE_BASE_LIMITS_H
#define CAGE_BASE_LIMITS_H

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* Names and targets */
#define LIMIT_HOST 253             /* bytes of a host name, without the root dot */
#define LIMIT_LABEL 63             /* bytes of one label */
#define LIMIT_TARGET KIB(16)       /* bytes of a request target */
#define LIMIT_PATH_DECODES 3       /* rounds of percent decoding that a path may need */
#define LIMIT_METHOD 32            /* bytes of a method */
#define LIMIT_OVERRIDES 4          /* fields of a request that stand for another method, or for another path */
#define LIMIT_SANDBOX 64           /* bytes of a sandbox id */
#define LIMIT_SANDBOXES 1024       /* that one proxy serves */
#define LIMIT_SANDBOX_TOKEN 256    /* bytes of what one shows, ... */
#define LIMIT_SANDBOX_TOKEN_MIN 16 /* ... and the fewest */
#define LIMIT_OPTION_WORD 128      /* bytes of an option's name in a message */

/* HTTP/1 */
#define LIMIT_HEAD KIB(64)          /* bytes of a request or response head */
#define LIMIT_HEADERS 200           /* fields of a head or of trailers */
#define LIMIT_CONNECTION_OPTIONS 16 /* names in the Connection fields of one head */
#define LIMIT_CHUNK_LINE 256        /* bytes of a chunk-size line with its extensions */
#define LIMIT_TRAILERS KIB(16)      /* bytes of a trailer section */
#define LIMIT_INTERIM 8             /* 1xx responses to one request */
#define LIMIT_RETRIES 1             /* stale pooled connections replaced, for one request */

/* Bodies */
#define LIMIT_BODY_DEFAULT MIB(32)
#define LIMIT_HOLD_DEFAULT MIB(1)
#define LIMIT_HOLD_BUDGET MIB(64) /* held bytes of one worker */
#define LIMIT_LAG_CODED \
	KIB(512) /* the same with content codings, which give what they have by the block: up to 128 KiB each */
#define LIMIT_LAG KIB(64) /* how far sending stays behind inspection beyond the hold */

/* HTTP/2, of one connection */
#define LIMIT_H2_STREAMS 128 /* requests under way */
/* Bytes of one body that came and were not taken. Not a round number: libcurl 7.88 forgets to end an upload of unknown
 * length when a window is used up within its last 2 KiB, and what is uploaded often has a round size. */
#define LIMIT_H2_WINDOW (KIB(256) + 9973)
#define LIMIT_H2_CONN_WINDOW (4 * LIMIT_H2_WINDOW) /* on its way to us, of all of them */
#define LIMIT_H2_AHEAD LIMIT_H2_CONN_WINDOW        /* that were not taken, and which nobody else can use up; ... */
#define LIMIT_H2_UNTAKEN MIB(32)      /* ... of a worker: within these, slow streams do not stall their connection */
#define LIMIT_H2_ACKS 256             /* answers to SETTINGS and PING that wait to be sent */
#define LIMIT_H2_CONTROL 1000         /* frames that carry nothing, beyond ... */
#define LIMIT_H2_CONTROL_RATE 50      /* ... so many a second ... */
#define LIMIT_H2_CONTROL_EARNED 4     /* ... and for each frame of a body, in either direction */
#define LIMIT_H2_RESETS 200           /* requests that were given up, beyond those that were answered and ... */
#define LIMIT_H2_RESETS_RATE 10       /* ... so many a second */
#define LIMIT_H2_REFUSED 3            /* times that a request which a server has refused unseen is sent again */
#define LIMIT_H2_LINGER_BYTES MIB(64) /* of an upload that has its answer, which some clients read at its end only */
#define LIMIT_H2_STALL_LOOKS 4        /* at a response that the client does not take, within LIMIT_STALL_MS */

/* WebSocket */
#define LIMIT_WS_MESSAGE MIB(16)    /* bytes of one message, over all its fragments */
#define LIMIT_WS_FRAGMENTS 65536    /* of one message, so that empty ones come to an end */
#define LIMIT_WS_STEPS 256          /* frames and pieces of one direction before others get their turn */
#define LIMIT_MESSAGE_SPLICE KIB(8) /* bytes before and behind where two messages meet that are searched as one */
#define LIMIT_MESSAGE_BRIEF 512     /* the same before a small one that leaves together with others, ... */
#define LIMIT_MESSAGE_OWED KIB(2)   /* ... all of which have so many bytes before all of them are searched as one */

/* Inspection */
#define LIMIT_MESSAGES_TURN KIB(4)  /* bytes of a gRPC body that are looked at before others get their turn */
#define LIMIT_CODINGS 3             /* content codings of one body */
#define LIMIT_DECODERS 64           /* content codings that a worker undoes at once: windows are up to 16 MiB */
#define LIMIT_DECODE_RATIO 200      /* decoded bytes for each byte that came, ... */
#define LIMIT_DECODE_FREE MIB(8)    /* ... beyond these */
#define LIMIT_DECODE_WINDOW 23      /* log2 of the most memory that a zstd window may ask for */
#define LIMIT_GRPC_MESSAGE MIB(16)  /* bytes of one gRPC message as it came */
#define LIMIT_VIEW_DEPTH 3          /* encodings inside encodings */
#define LIMIT_VIEW_TEXTS 64         /* decoded texts of one message that are open at once */
#define LIMIT_VIEW_WORK 48          /* bytes decoded in all views for each byte of the text, ... */
#define LIMIT_VIEW_WORK_FREE MIB(1) /* ... beyond these */
#define LIMIT_VIEW_LATE KIB(16)     /* bytes of the text in which something of each open view has to come */
#define LIMIT_SCAN_TAIL 4096        /* bytes of a text that a match may reach back over the end of a piece */
#define LIMIT_SCAN_STEPS 20000      /* steps of one exact match */
#define LIMIT_SCAN_DEPTH 200        /* nesting of one exact match */
#define LIMIT_SCAN_CONFIRMS 64      /* exact matches of one format for each KiB of a text */
#define LIMIT_SEARCHES 4096         /* texts that a worker looks at at once */
#define LIMIT_SEARCHES_SPARE 32     /* kept for the next */
#define LIMIT_SEARCH_KEPT 8         /* decoded texts that a kept one has room for */
#define LIMIT_SECRET_MIN 8          /* bytes of the shortest match of a format that a policy adds */
#define LIMIT_CANARY_MIN 8          /* bytes of a canary */
#define LIMIT_CANARY_MAX 128
#define LIMIT_NAMES 1000      /* different names under one domain that can be counted */
#define LIMIT_FINDINGS 8      /* of one message in the log */
#define LIMIT_FINDINGS_LATE 2 /* of those that are found after the intent, in the result */
#define LIMIT_FINDING_NAME 64 /* bytes of a field name in a finding */

/* Secrets */
#define LIMIT_SECRETS 64            /* of one policy; a bit each in a 64-bit word */
#define LIMIT_SECRETS_ALL 2048      /* of all policies of a proxy, and those that they had before; a multiple of 64 */
#define LIMIT_SECRET_VALUE KIB(16)  /* bytes of a value */
#define LIMIT_SECRET_VALUE_MIN 8    /* fewer would be found everywhere */
#define LIMIT_SECRET_KEEP_S 2592000 /* the longest that an old value is still taken out of responses */
#define LIMIT_SECRET_KEEP_DEFAULT_S 600
#define LIMIT_SECRET_NAME 128   /* bytes of the name of a variable, field or parameter that has one */
#define LIMIT_SECRET_TEXT 1024  /* bytes of what else a policy says about one: a scope, a client id */
#define LIMIT_SECRET_VERSIONS 4 /* values of one secret that are known at once, old ones included */
#define LIMIT_PLACEHOLDER 128   /* bytes of a placeholder */
#define LIMIT_PLACEHOLDER_MIN 8
#define LIMIT_BODY_SECRETS 64     /* placeholders that are replaced in one body */
#define LIMIT_REDACT_HOLD KIB(64) /* a response body up to this keeps its Content-Length; a longer one goes chunked */
#define LIMIT_SECRET_FILE_MS 1000 /* between looks at the files of secrets */

/* Tokens that are got for secrets */
#define LIMIT_TOKENS (2 * LIMIT_SECRETS) /* of one worker that are good, those that were replaced included */
#define LIMIT_TOKENS_KEPT 1024           /* those whose time is over and that may still be borrowed included */
#define LIMIT_TOKEN_RESPONSE KIB(64)     /* bytes of what a token service answers */
#define LIMIT_TOKEN_MS 10000             /* all of getting one */
#define LIMIT_TOKEN_FAILED_MS 5000       /* before the next try */
#define LIMIT_TOKEN_EARLY_S 60           /* a new one is got so long before the end, ... */
#define LIMIT_TOKEN_FRESH_MIN_S 30       /* ... after no less ... */
#define LIMIT_TOKEN_FRESH_MAX_S 3600     /* ... and no more than this */
#define LIMIT_TOKEN_LIFE_S 86400         /* the longest life that a service is believed */
#define LIMIT_TOKEN_LIFE_DEFAULT_S 300   /* where it does not say */

/* Secrets that are read from Azure Key Vault */
#define LIMIT_KEYVAULT_NAME 127          /* bytes of a secret's name, and ... */
#define LIMIT_KEYVAULT_VERSION 32        /* ... of its version, as Azure has them */
#define LIMIT_KEYVAULT_ANSWER KIB(128)   /* bytes of an answer: a value, each byte escaped, and what stands around it */
#define LIMIT_KEYVAULT_CALL_MS 10000     /* of one exchange */
#define LIMIT_KEYVAULT_ROUND_MS 20000    /* of reading all of them once */
#define LIMIT_KEYVAULT_START_MS 45000    /* of the first reading with all its tries: cage-proxy ends then */
#define LIMIT_KEYVAULT_REFRESH_MS 300000 /* between two readings, give or take a tenth */
#define LIMIT_KEYVAULT_RETRY_MS 1000     /* after one that failed; twice that each time, ... */
#define LIMIT_KEYVAULT_RETRY_MAX_MS 60000 /* ... and no more than this, unless the service asks for more, ... */
#define LIMIT_KEYVAULT_WAIT_S 3600        /* ... which is believed up to this */

/* The external inspector */
#define LIMIT_EXTERNAL_LINE KIB(64)  /* bytes of one answer of an external inspector */
#define LIMIT_EXTERNAL_PIECE KIB(16) /* bytes of a body in one line to it */
#define LIMIT_EXTERNAL_QUEUE MIB(16) /* bytes of one worker that it has not read yet */
#define LIMIT_EXTERNAL_WAITING 1024  /* requests of one worker that wait for it */
#define LIMIT_EXTERNAL_NOTE 200      /* bytes of a note to the operator */
#define LIMIT_EXTERNAL_SOCKET 107    /* bytes of the path of its socket */
#define LIMIT_EXTERNAL_MS 2000       /* wait for an answer, unless the policy says otherwise, ... */
#define LIMIT_EXTERNAL_MAX_MS 30000  /* ... which it can up to this */
#define LIMIT_EXTERNAL_PAUSE_MS 1000 /* the longest pause before one that has failed is started again */
#define LIMIT_EXTERNAL_STOP_MS 2000  /* from SIGTERM to SIGKILL */

/* What is counted over all workers */
#define LIMIT_LEDGER_SANDBOXES 1024       /* that have a share of their own; more of them have one together */
#define LIMIT_LEDGER_ENTRIES 2048         /* things counted at once, of one share */
#define LIMIT_LEDGER_PROBES 32            /* entries among which one key can be */
#define LIMIT_LEDGER_TRIES 1000           /* of one change that others get in the way of */
#define LIMIT_LEDGER_SPEND (MIB(1) << 20) /* bytes of a budget that can be counted */

/* The room of an agent */
#define LIMIT_ROOM_FITTINGS 1024   /* binds, file systems in memory and hidden paths, those of cage included */
#define LIMIT_ROOM_ETC 1024        /* names in /etc that are not the room's own: it is not made where there are more */
#define LIMIT_ROOM_ETC_FILE MIB(1) /* bytes of a file there that is copied, ... */
#define LIMIT_ROOM_ETC_ALL MIB(32) /* ... and of all of them: one that is larger, or does not fit any more, is bound */
#define LIMIT_ROOM_ETC_WALK \
	8192 /* names below one directory of /etc that are looked at: one with more is left out, ... */
#define LIMIT_ROOM_ETC_DEPTH 16     /* ... and so is one with more levels */
#define LIMIT_ROOM_ETC_BELOW 128    /* things in such directories that are bound by themselves; more are left out */
#define LIMIT_ROOM_PIECES 2304      /* things that are put into a room: fittings, names in /etc, and its own */
#define LIMIT_ROOM_TMP MIB(1024)    /* bytes of /tmp, ... */
#define LIMIT_ROOM_HOME MIB(1024)   /* ... the home, ... */
#define LIMIT_ROOM_SHM MIB(256)     /* ... /dev/shm, ... */
#define LIMIT_ROOM_SMALL MIB(64)    /* ... /run and /var */
#define LIMIT_ROOM_INODES 262144    /* files of /tmp, of the home and of one that was asked for, ... */
#define LIMIT_ROOM_FEW_INODES 16384 /* ... of each of the others: the kernel has a page for two or three of them */
#define LIMIT_ROOM_DEVICES 64       /* devices, links and directories of /dev */
#define LIMIT_ROOM_PIDS 4096        /* processes, unless told otherwise */
#define LIMIT_ROOM_LEAST_PIDS 4     /* those of the gate in a room, and CMD */
#define LIMIT_ROOM_FILES 65536      /* descriptors of a process, unless told otherwise */
#define LIMIT_ROOM_CGROUPS 16       /* names that are tried for its cgroup */
#define LIMIT_ROOM_LOOKUPS 1000     /* of one name, when others go on renaming */
#define LIMIT_ROOM_SOCKETS 256      /* sockets of others that are hidden in it */
#define LIMIT_SWEPT 4096            /* processes that are known at once while what a room has left is ended, ... */
#define LIMIT_SWEEP_S 10            /* ... which is tried so long */
#define LIMIT_WALK MIB(64)          /* bytes of names on the way through a tree that it has left */

/* Memory of a connection */
#define LIMIT_HELLO KIB(16)      /* ClientHello of a captured connection: it is read ahead of the handshake */
#define LIMIT_STREAM_IN KIB(66)  /* input buffer: a whole head fits */
#define LIMIT_PIPE KIB(64)       /* bytes under way between two streams in memory */
#define LIMIT_OUT_HIGH KIB(256)  /* output mark above which the source is not read */
#define LIMIT_OUT_LOW KIB(64)    /* and below which it is read again */
#define LIMIT_WAITING MIB(32)    /* output of all streams of a worker; beyond it each of them ... */
#define LIMIT_OUT_SHORT KIB(16)  /* ... has this mark, and one whose owner takes nothing is not read */
#define LIMIT_TXN_ARENA MIB(1)   /* arena of one transaction */
#define LIMIT_READS_PER_WAKEUP 8 /* read calls of one stream before others get their turn */
#define LIMIT_ACCEPTS_PER_WAKEUP 64
#define LIMIT_ACCEPT_REST_MS 100  /* pause in accepting when descriptors are out */
#define LIMIT_LINGER_BYTES MIB(4) /* drained after a refusal, so that the client reads it */

/* Connections and caches of one worker */
#define LIMIT_CONNS 16384
#define LIMIT_STREAMS (2 * LIMIT_CONNS) /* sockets to clients and servers, those that are being finished included */
#define LIMIT_PIPES (4 * LIMIT_CONNS)   /* ends of streams in memory, beyond which no request over HTTP/2 is taken */
#define LIMIT_POOL_IDLE 512             /* idle upstream connections */
#define LIMIT_POOL_PER_ORIGIN 64
#define LIMIT_LEAVES 4096   /* minted certificates kept */
#define LIMIT_SESSIONS 4096 /* upstream TLS sessions kept */
#define LIMIT_MINT_RATE 50  /* new names a second, over all workers */
#define LIMIT_MINT_BURST 500
#define LIMIT_MINT_WAITING 1024 /* connections of one worker that wait for a leaf */
#define LIMIT_WORKERS 64
#define LIMIT_NEVER 4 /* listeners of others that are as our own */
#define LIMIT_LISTENERS 16
#define LIMIT_WATCH_RATE 10       /* lines a second about attempts that the room's network refused, ... */
#define LIMIT_WATCH_BURST 100     /* ... after so many at once */
#define LIMIT_WATCH_PER_WAKEUP 64 /* packets of it that are read before others get their turn */

/* Names to addresses */
#define LIMIT_ANSWERS 16          /* addresses of one answer that are looked at */
#define LIMIT_RESOLVE_TRIES 3     /* queries to one server for one name */
#define LIMIT_RESOLVE_TRY_MS 1000 /* wait for the first; each next one waits twice as long */
#define LIMIT_DIAL_ATTEMPTS 6
#define LIMIT_DIAL_STAGGER_MS 250

/* cage-dns */
#define LIMIT_DNS_TYPES 16           /* query types that a policy can list beside A and AAAA */
#define LIMIT_DNS_TTL_S 604800       /* the longest that an answer may be kept by a client */
#define LIMIT_DNS_GIVEN_TTL_S 60     /* how long a client keeps an address of the pool, by default */
#define LIMIT_DNS_NAME_BYTES MIB(64) /* of names that a policy may let out in a period */
#define LIMIT_DNS_POOL_WIDEST 8      /* prefix of the range of synthetic addresses, ... */
#define LIMIT_DNS_POOL_NARROWEST 24  /* ... at most that */

/* DNS messages */
#define LIMIT_DNS_UDP 1232    /* bytes of an answer over UDP: fits one packet on every path */
#define LIMIT_DNS_RECORDS 128 /* records of an upstream's answer */
#define LIMIT_DNS_JUMPS 64    /* compression pointers of one name */
#define LIMIT_DNS_QUERY 2048  /* bytes of a query; one over TCP that says it is longer ends the connection */
#define LIMIT_DNS_TCP KIB(16) /* bytes of an answer over TCP */

/* Clients of DNS */
#define LIMIT_DNS_BATCH 64          /* packets of one system call, ... */
#define LIMIT_DNS_BATCHES 4         /* ... and such calls before others get their turn */
#define LIMIT_DNS_TRAIN 65000       /* bytes of answers to one client that leave as one */
#define LIMIT_DNS_TURN 8            /* queries of one connection before others get their turn */
#define LIMIT_DNS_REST_MS 5         /* between looks at the log whether it has room for what comes */
#define LIMIT_DNS_UDP_BUFFER MIB(1) /* asked of the kernel for what has not been read */
#define LIMIT_DNS_RATE 1000         /* UDP answers a second to one prefix that is not loopback, ... */
#define LIMIT_DNS_BURST 2000        /* ... and so many at once */
#define LIMIT_DNS_PREFIXES 4096     /* counters, which prefixes share when there are more */
#define LIMIT_DNS_CONNS 128      /* connections; beyond them the one that is idle longest goes, or else the new one */
#define LIMIT_DNS_PIPELINE 64    /* queries of one connection that wait for answers; then it is not read */
#define LIMIT_DNS_UNSENT KIB(64) /* bytes of answers that one connection does not take before it is cut */
#define LIMIT_DNS_READ_MS 5000   /* first byte of a query over TCP to its last */
#define LIMIT_DNS_IDLE_MS 30000  /* a connection on which nothing happens */

/* DNS answers */
#define LIMIT_DNS_ALIASES 8          /* from the name that was asked to the one that has the records */
#define LIMIT_DNS_ANSWER KIB(4)      /* bytes of aliases and records of one answer */
#define LIMIT_DNS_NEGATIVE_S 900     /* that "there is none" is believed, however long it says */
#define LIMIT_DNS_HARMLESS 131072    /* refused names that are known to hide nothing; a power of two */
#define LIMIT_DNS_LOOKED_S 3600      /* that a name of which nothing leaves is not looked at again */
#define LIMIT_DNS_FAILED_S 5         /* that a failure, or an answer that is refused, is kept */
#define LIMIT_DNS_CACHE 10000        /* answers kept, ... */
#define LIMIT_DNS_CACHE_BYTES MIB(2) /* ... and bytes of them */
#define LIMIT_DNS_WAITING 1024       /* questions that clients wait for at once */
#define LIMIT_DNS_WAITING_CLIENTS 64 /* clients that wait for one of them */

/* Bindings */
#define LIMIT_BINDINGS 16384        /* names and families, or names with an address of the pool, known at once */
#define LIMIT_BINDING_LIFE_S 700000 /* the longest life of one: that of an answer, and the grace */
#define LIMIT_BINDING_GRACE_S 60    /* after the end of an answer, in which a client may still connect */
#define LIMIT_BINDING_GIVEN_S 3600  /* since a name was last asked for, until its address may go to another */
#define LIMIT_BINDING_PROBES 64     /* addresses of the pool that are tried for one name */
#define LIMIT_BINDING_PEERS 64      /* proxy workers that are told */
#define LIMIT_BINDING_QUEUE MIB(8)  /* bytes that one of them has not read yet */
#define LIMIT_BINDING_CATCH_UP 1024 /* reads of a worker before it says that it does not know a name */
#define LIMIT_BINDING_RETRY_MS 200  /* between tries of a worker to connect */

/* DNS upstreams */
#define LIMIT_DNS_SERVERS 8
#define LIMIT_DNS_LOOKUPS 1024      /* that somebody waits for, ... */
#define LIMIT_DNS_HELD 2048         /* ... and with those that nobody does any more; a power of two */
#define LIMIT_DNS_LOOKUP_MS 5000    /* all of one */
#define LIMIT_DNS_ASKS 2            /* times that a question is asked whose answer is not to it */
#define LIMIT_DNS_TRIES 2           /* messages to one server for one question; over UDP 1 when there are more than 2 */
#define LIMIT_DNS_TRY_MS 1000       /* wait for the first answer at most; over UDP the next waits twice as long */
#define LIMIT_DNS_TICK_MS 100       /* between looks at what waits too long */
#define LIMIT_DNS_CHANNELS 16       /* sets of sockets */
#define LIMIT_DNS_CHANNELS_MIN 4    /* from the beginning */
#define LIMIT_DNS_CHANNEL_USES 256  /* questions before the source port changes */
#define LIMIT_DNS_TLS_MS 2000       /* connection and handshake, at most */
#define LIMIT_DNS_TLS_IDLE_MS 20000 /* connection on which nothing is asked */

/* Deadlines, milliseconds */
#define LIMIT_HANDSHAKE_MS 10000
#define LIMIT_H2_PARTING_MS 1000 /* from the last answer of an HTTP/2 connection to its GOAWAY, if it is to leave */
#define LIMIT_HEAD_MS 30000      /* first byte of a head to its last */
#define LIMIT_IDLE_MS 120000     /* kept-alive client connection */
#define LIMIT_BODY_IDLE_MS 60000 /* between two reads of a request body */
#define LIMIT_RESPONSE_IDLE_MS 600000 /* a model may think for minutes */
#define LIMIT_WS_IDLE_MS 3600000      /* a websocket on which nothing is said, in either direction */
#define LIMIT_WS_CLOSE_MS 10000       /* from one side's close to the other's */
#define LIMIT_TOTAL_MS 21600000       /* one exchange: 6 h */
#define LIMIT_POOL_IDLE_MS 50000
#define LIMIT_POLICY_REST_MS 60000 /* after which what was built from a sandbox's policy is let go until it is needed */
#define LIMIT_POOL_AWAKE_MS 200    /* after which an idle connection gives its buffers back */
#define LIMIT_RESOLVE_MS 5000
#define LIMIT_CONNECT_MS 10000
#define LIMIT_STALL_MS 60000   /* a peer that takes nothing of what waits for it */
#define LIMIT_FINISH_MS 300000 /* all of sending what is left on a connection that ends */
#define LIMIT_LINGER_MS 5000
#define LIMIT_STOP_MS 15000  /* all of a stop, with the drain */
#define LIMIT_DRAIN_MS 10000 /* busy connections after SIGTERM */

/* Policy */
#define LIMIT_POLICY_FILE MIB(8)
#define LIMIT_POLICY_INCLUDES 64
#define LIMIT_POLICY_DEPTH 16 /* nesting of the YAML */
#define LIMIT_POLICY_NODES 1000000
#define LIMIT_POLICY_ERRORS 100 /* reported at once */
#define LIMIT_POLICY_RULES 100000
#define LIMIT_POLICY_REGION MIB(256)   /* address space of one compiled policy */
#define LIMIT_POLICY_SLOTS 8           /* generations of one policy that can be alive at once */
#define LIMIT_POLICY_SCRATCH MIB(512)  /* memory of the loader itself */
#define LIMIT_POLICY_COMPARE 100000000 /* steps in the search for rules that tie */
#define LIMIT_POLICY_VALUE 64          /* bytes of a wrong value that an error shows */
#define LIMIT_POLICY_NAME 64
#define LIMIT_RULE_ID 64
#define LIMIT_POLICY_RATE 1000000 /* requests of a rate or burst */
#define LIMIT_PATH_PATTERN 1024
#define LIMIT_TRUST_FILE MIB(4)

/* Images of containers */
#define LIMIT_IMAGES 1000           /* entries of a policy */
#define LIMIT_IMAGE_REPOSITORY 255  /* bytes: as registries have it */
#define LIMIT_IMAGE_REFERENCE 600   /* bytes of a registry with its port, a repository and a digest */
#define LIMIT_IMAGE_KEY KIB(4)      /* bytes of a file with a public key */
#define LIMIT_IMAGE_PAYLOAD KIB(16) /* bytes that a signature is over */
#define LIMIT_IMAGE_SIGNATURE 128   /* bytes of a signature in base64; one of P-256 has 96 */
#define LIMIT_IMAGE_SIGNATURES 64   /* of one image that are looked at */
#define LIMIT_IMAGE_TRIES 256       /* signatures that are checked with a key, in all */
#define LIMIT_IMAGE_INDEX MIB(1)    /* bytes of the index of an OCI layout */
#define LIMIT_IMAGE_MANIFEST MIB(4) /* bytes of a manifest: as registries have it */

/* Log */
#define LIMIT_LOG_RECORD KIB(48)    /* one event in the ring */
#define LIMIT_LOG_RESULT 2048       /* one result: what an intent reserves */
#define LIMIT_LOG_SECRETS 8         /* ids of secrets in one line */
#define LIMIT_LOG_RING MIB(4)       /* one worker's ring */
#define LIMIT_LOG_WHO 320           /* sandbox and policy kept of an open intent, as JSON */
#define LIMIT_LOG_BATCH KIB(256)    /* lines written at once */
#define LIMIT_LOG_FLUSH_MS 50       /* a line is written within twice this */
#define LIMIT_LOG_WAIT_MS 5         /* a head waits for the writer, again and again */
#define LIMIT_LOG_SYNC_MS 1000      /* fdatasync at most this long after a write */
#define LIMIT_LOG_RETRY_MS 500      /* after a failed write */
#define LIMIT_LOG_LAST_MS 2000      /* the workers' end, once the master is gone */
#define LIMIT_LOG_LEAST KIB(256)    /* the smallest bound of a file: there is room for a line, and for the last one */
#define LIMIT_LOG_MOST (1ull << 40) /* the largest one */
#define LIMIT_LOG_TURN MIB(1)       /* the smallest of a file that another one follows: there is room for a batch */
#define LIMIT_LOG_SANDBOX MIB(1024) /* each log of a sandbox of cage serve, unless configured */

/* What is done in a sandbox of cage serve */
#define LIMIT_INSIDE_FRAME 32768  /* bytes of one message between a sandbox and its keeper */
#define LIMIT_INSIDE_WORDS 1024   /* of a command */
#define LIMIT_INSIDE_JOBS 96      /* at the same time; one more is refused */
#define LIMIT_INSIDE_WINDOW 65536 /* bytes of a job that are under way, in each direction */
#define LIMIT_INSIDE_REST 64      /* reads of what a program has left in its pipes when it has ended */
#define LIMIT_INSIDE_END_MS 1000  /* for programs that are killed at its end */
#define LIMIT_INSIDE_DEPTH 256    /* directories on the way to a file */
#define LIMIT_INSIDE_LINKS 40     /* links on that way: as many as the kernel follows */
#define LIMIT_INSIDE_LIST 10000   /* names in a directory that is listed */

/* The keeper of a sandbox */
#define LIMIT_KEEPER_PATH 3000           /* bytes of the name of its directory */
#define LIMIT_KEEPER_SPEC MIB(1)         /* bytes of what it is told at the start */
#define LIMIT_KEEPER_RESULT 4096         /* bytes of what it leaves at the end; reserved from the start */
#define LIMIT_KEEPER_MESSAGE 500         /* bytes of that for people */
#define LIMIT_KEEPER_LINES 5             /* of what cage run has said last, in such a message */
#define LIMIT_KEEPER_QUEUE MIB(1)        /* bytes for the room that wait; beyond it no more are read from others */
#define LIMIT_KEEPER_CLIENT_LOW KIB(256) /* bytes that the service has not read; beyond it jobs are held back */
#define LIMIT_KEEPER_CLIENT MIB(16)      /* the same, when a sandbox does not keep to it: the connection ends */
#define LIMIT_KEEPER_READS 8             /* reads of one descriptor before others get their turn */
#define LIMIT_KEEPER_FILES 10000         /* put into a workspace at the start */
#define LIMIT_KEEPER_KEPT 100000         /* names of a workspace that is kept, ... */
#define LIMIT_KEEPER_KEPT_BYTES (MIB(64) << 10) /* ... bytes of it, whatever its disk, ... */
#define LIMIT_KEEPER_KEPT_BLOCK KIB(4)          /* ... counted in these, ... */
#define LIMIT_KEEPER_KEPT_DEPTH 64              /* ... directories in each other, ... */
#define LIMIT_KEEPER_PULL_MS 60000              /* ... and time to take them out */
#define LIMIT_KEEPER_START_MS 60000             /* until the room stands */
#define LIMIT_KEEPER_LEAVE_MS 2000              /* until cage-inside has ended by itself */
#define LIMIT_KEEPER_END_MS \
	40000 /* until cage run is gone: its own bounds are shorter; a cage-pod that takes longer is killed, and what it left removed */
#define LIMIT_KEEPER_STALL_MS 30000     /* that cage-inside takes nothing of what it was sent */
#define LIMIT_KEEPER_LAST_MS 1000       /* to tell the service of the end */
#define LIMIT_KEEPER_SAMPLE_MS 1000     /* between looks at how full the workspace is */
#define LIMIT_KEEPER_WALL_MS 2592000000 /* 30 days */
#define LIMIT_KEEPER_OUTPUT MIB(1024)   /* bytes of output that can be kept */
#define LIMIT_KEEPER_JOBS 24            /* of the service, at the same time */
#define LIMIT_KEEPER_PUBLISHED 16       /* ports */
#define LIMIT_KEEPER_CONNS 64           /* connections to them; more wait to be accepted */
#define LIMIT_KEEPER_TOOLS 64           /* tool calls that wait for the log, ... */
#define LIMIT_KEEPER_TOOL_MS 10000      /* ... at most so long */
#define LIMIT_KEEPER_RELOADS 8          /* that wait for cage run */
#define LIMIT_KEEPER_FETCHES 8          /* requests of cage-fetch at the same time */
#define LIMIT_KEEPER_POLLED 256         /* descriptors that it waits for */

/* A sandbox of Podman's containers */
#define LIMIT_POD_COMMAND_MS 30000    /* for one podman command; then it is killed */
#define LIMIT_POD_START_MS 55000      /* until the agent's command begins; the keeper waits a little longer */
#define LIMIT_POD_REMOVE_MS 180000    /* for all commands that remove a sandbox: at most five, and a monitor's end */
#define LIMIT_POD_STOP_MS 5000        /* that cage-proxy and cage-dns have to end their logs */
#define LIMIT_POD_SAID KIB(4)         /* bytes of what a podman command says that are kept, ... */
#define LIMIT_POD_HEARD KIB(16)       /* ... and of what a container says that are passed on */
#define LIMIT_POD_WORDS KIB(896)      /* bytes of the variables of a container */
#define LIMIT_POD_NETWORKS 8          /* subnets that are tried before there is none */
#define LIMIT_POD_SAMPLE_MS 1000      /* between looks at what the agent uses */
#define LIMIT_POD_MONITOR 4096        /* bytes of conmon's command line that are looked at */
#define LIMIT_POD_MONITOR_MS 3000     /* that conmon has to end by itself */
#define LIMIT_POD_NAME 128            /* bytes of the name of a container or network */
#define LIMIT_POD_SCRATCH MIB(64)     /* bytes of an agent's /tmp, and of its home */
#define LIMIT_POD_HELPER_PIDS 64      /* processes of cage-proxy, and of cage-dns, ... */
#define LIMIT_POD_HELPER_MEM MIB(512) /* ... and bytes of memory */
#define LIMIT_POD_GVISOR_PIDS 256     /* threads of gVisor itself, and ... */
#define LIMIT_POD_GVISOR_EACH 8       /* ... that it needs for each process of an agent: 5 were seen */
#define LIMIT_POD_FILES 262144        /* open files of all processes of an agent, if there are not too many of them */
#define LIMIT_DOOR_HELPER_MS 2000     /* until cage-proxy or cage-dns answers the agent's first connection */
#define LIMIT_DOOR_SILENCE_MS 30      /* in which nobody else may answer */
#define LIMIT_DOOR_PLACES 16          /* addresses of the agent's network */

/* cage-fetch */
#define LIMIT_FETCH_INPUT MIB(1) /* bytes of what it is asked for */
#define LIMIT_FETCH_BODY MIB(16) /* bytes of an answer that are told, at most */
#define LIMIT_FETCH_BODY_DEFAULT MIB(1)
#define LIMIT_FETCH_HEAD KIB(64) /* bytes of its header fields */
#define LIMIT_FETCH_FIELDS 100   /* header fields that are sent */
#define LIMIT_FETCH_MS 600000    /* for all of it, at most */
#define LIMIT_FETCH_MS_DEFAULT 30000
#define LIMIT_TOOL_CALL KIB(4) /* bytes of what the log is told of a tool call, ... */
#define LIMIT_TOOL_DETAIL 256  /* ... of which a line has so many */
#define LIMIT_TOOL_CLIENTS 8   /* who tell it */

/* A run of cage */
#define LIMIT_HELPER_LINE 1024  /* bytes of a line that cage-proxy or cage-dns says */
#define LIMIT_LAUNCH_FDS 16     /* descriptors that a program is given */
#define LIMIT_INTERRUPT_MS 2000 /* between a Ctrl-C that asks and one that kills */
#define LIMIT_GATE_END_MS 12000 /* from asking the gate to killing it; it looks for orphans up to 10 s */
#define LIMIT_STREAM KIB(16)    /* bytes of a file that are passed on at once */
#define LIMIT_FRONT_MS 200      /* between looks whether a terminal is ours again */
#define LIMIT_TTY_LAST MIB(1)   /* bytes of a terminal that are copied after CMD's end */
#define LIMIT_CERTIFICATE KIB(16)
#define LIMIT_SUMMARY_ROWS 20     /* distinct ones: what was blocked, by its reason, method, host and path */
#define LIMIT_PROBES 128          /* of cage verify */
#define LIMIT_PROBE_MS 2000       /* for an answer to a probe of cage verify */
#define LIMIT_TREE 1048576        /* files of a workspace ... */
#define LIMIT_TREE_NAMES MIB(256) /* ... and bytes of all their names, each with its directories */
#define LIMIT_WORKSPACE_PATH 4096 /* bytes of the name of one, and of names in it */
#define LIMIT_COPY_QUIET 10000    /* files of a workspace that are copied without a word about it */
#define LIMIT_LISTED 1000         /* changes that are listed by name */
#define LIMIT_SHOWN_PATH KIB(25)  /* such a name for people, with every byte escaped */
#define LIMIT_SEEN_FORMATS 1024   /* formats of credentials in a patch */
#define LIMIT_DIFF MIB(64)        /* bytes of diff.patch before its last line; diff writes them ... */
#define LIMIT_DIFF_MS 20000       /* ... in that time ... */
#define LIMIT_DIFF_RAM MIB(2048)  /* ... and memory */
#define LIMIT_OWN_NAMES KIB(64)   /* bytes of the names of a policy's files that lie in a workspace */
#define LIMIT_SUMMARY_TEXT 512    /* bytes of one row: a reason, a method, a host and ... */
#define LIMIT_SUMMARY_PATH 120    /* ... so many of the path */
#define LIMIT_GIT_CONFIG KIB(256) /* bytes of a configuration of git, ... */
#define LIMIT_GIT_VALUE KIB(8)    /* ... and of one value in it */
#define LIMIT_GIT_INCLUDES 10     /* how deep they include each other: as git has it */
#define LIMIT_GIT_FILES 4096      /* such configurations, and other files of git, that are read for one workspace */
#define LIMIT_LINK_NAMES MIB(32)  /* bytes of the names of links in a workspace, ... */
#define LIMIT_LINK_ROUNDS 8       /* ... and how often one is found behind another */
#define LIMIT_LINK_HOPS 40        /* links on the way to a file: as many as the kernel follows */
#define LIMIT_OBEYED 4096         /* names of what is obeyed in one because of them, or of git, ... */
#define LIMIT_OBEYED_LOOKS 262144 /* ... of so many that are looked at */
#define LIMIT_NOTES KIB(16)       /* bytes of what the helpers say while CMD has the terminal */

/* The service (cage serve) */
#define LIMIT_SERVE_HEAD KIB(32)       /* bytes of a request's head */
#define LIMIT_SERVE_BODY MIB(8)        /* bytes of a JSON body */
#define LIMIT_SERVE_FILE MIB(256)      /* bytes of a file that is got or put */
#define LIMIT_SERVE_HELD MIB(64)       /* bytes of bodies of all requests that are held in memory */
#define LIMIT_SERVE_RESULTS MIB(64)    /* bytes of tool calls' results, and of answers that clients have not read */
#define LIMIT_SERVE_FILES 4096         /* descriptors of the service */
#define LIMIT_SERVE_CONNS 512          /* connections; more wait to be accepted */
#define LIMIT_SERVE_REQUESTS 512       /* that are answered at the same time */
#define LIMIT_SERVE_FOLLOWERS 128      /* of logs and outputs */
#define LIMIT_SERVE_IDLE_S 120         /* a connection on which nothing happens */
#define LIMIT_SERVE_REST_MS 100        /* of a listener for which there is no descriptor */
#define LIMIT_SERVE_FOLLOW_MS 100      /* between looks of a follower */
#define LIMIT_SERVE_BEAT_MS 15000      /* between signs of life to one */
#define LIMIT_SERVE_PIECE KIB(64)      /* bytes of a file that are sent at once */
#define LIMIT_SERVE_UNSENT KIB(512)    /* bytes that a follower has not read before it gets no more */
#define LIMIT_SERVE_ERRORS 100         /* wrong values of one request that are named */
#define LIMIT_SERVE_POINTER 512        /* bytes of the place of one */
#define LIMIT_SERVE_PATH 4000          /* bytes of a path in a workspace */
#define LIMIT_SERVE_LABELS 16          /* of one sandbox */
#define LIMIT_SERVE_LABEL 63           /* bytes of the name of one, and of its value */
#define LIMIT_SERVE_QUOTAS 64          /* in the configuration */
#define LIMIT_SERVE_PROFILES 64        /* likewise */
#define LIMIT_SERVE_LISTENERS 8        /* likewise */
#define LIMIT_SERVE_CONFIG MIB(1)      /* bytes of it */
#define LIMIT_SERVE_RUNNING 1000       /* sandboxes at the same time that it may allow */
#define LIMIT_SERVE_QUEUED 100000      /* that may wait */
#define LIMIT_SERVE_LIFE_S 2592000     /* of a sandbox */
#define LIMIT_SERVE_PAGE 1000          /* sandboxes in one answer */
#define LIMIT_SERVE_KEY 128            /* bytes of an idempotency key */
#define LIMIT_SERVE_KEY_S 86400        /* that one is known */
#define LIMIT_SERVE_REQUEST_ID 64      /* bytes */
#define LIMIT_SERVE_TOOL_OUT MIB(1)    /* bytes of stdout, of stderr and of a file that a tool call gives back */
#define LIMIT_SERVE_TOOL_S 3600        /* the longest time of a tool call, ... */
#define LIMIT_SERVE_TOOL_DEFAULT_S 60  /* ... and the usual one */
#define LIMIT_SERVE_VERIFY_MS 120000   /* for all probes in a sandbox */
#define LIMIT_SERVE_TOOL_END_MS 5000   /* from cancelling one to giving it up */
#define LIMIT_SERVE_COMMAND 30000      /* bytes of a command: it fits into a frame */
#define LIMIT_SERVE_DETAIL 256         /* bytes of a tool call in the decision log */
#define LIMIT_SERVE_REGEX_CPU_US 20000 /* to match all blocked commands; what needs more counts as one of them */
#define LIMIT_SERVE_REGEX_DEPTH 1000   /* likewise, of one match */
#define LIMIT_SERVE_JOBS 24            /* of one sandbox at the same time; cage-inside has 96 */
#define LIMIT_SERVE_CONNECT_MS 20      /* between tries to reach a keeper that has just started */
#define LIMIT_SERVE_CREATING_MS 60000  /* from the start of a keeper to its room */
#define LIMIT_SERVE_GRACE_MS 5000      /* from SIGTERM to SIGKILL of a command */
#define LIMIT_SERVE_STOP_MS 40000      /* from asking a keeper to killing it */
#define LIMIT_SERVE_CHILDREN 8         /* helpers of the service at the same time; others wait */
#define LIMIT_SERVE_CHILDREN_WAITING 1024
#define LIMIT_SERVE_CHILD_MS 60000        /* all of one */
#define LIMIT_SERVE_CHILD_OUT KIB(256)    /* bytes that one says */
#define LIMIT_SERVE_SWEEP_MS 60000        /* between sweeps */
#define LIMIT_SERVE_RESERVE MIB(1)        /* bytes of the disk that are kept for what ends and removes sandboxes */
#define LIMIT_SERVE_FREE MIB(1)           /* bytes that are free before a sandbox is made or started, ... */
#define LIMIT_SERVE_FREE_NAMES 128        /* ... and files that can be made */
#define LIMIT_SERVE_LARGEST (1ll << 50)   /* bytes of any limit of a sandbox */
#define LIMIT_SERVE_RETENTION_S 31536000  /* a year: the longest that output, logs and files can stay */
#define LIMIT_SERVE_ROOTFS 64             /* roots that the configuration names */
#define LIMIT_SERVE_BACKENDS 8            /* likewise */
#define LIMIT_SERVE_RECORDS_S 315360000ll /* ten years: the longest that records can be kept */
#define LIMIT_SERVE_SWEPT MIB(8)          /* bytes of the names that a sweep finds */
#define LIMIT_SERVE_SWEEP_PIECE 16        /* of them that are compared before others get their turn */
#define LIMIT_SERVE_REAP_MS 30000         /* until a sandbox that is ended by force is gone, ... */
#define LIMIT_SERVE_REAP_RUN_MS 10000     /* ... of which its cage run has this to end by itself */
#define LIMIT_SERVE_ARGV KIB(64)          /* bytes of a process' words that are looked at for whose it is */
#define LIMIT_SERVE_UNKNOWN_MS 2000       /* that a keeper whose start was not seen has to show itself */
#define LIMIT_SERVE_DIR 4200              /* bytes of the path of a sandbox's directory, and of a file in it */
#define LIMIT_SERVE_BUSY_MS 5000          /* that is waited for others who read the database */
#define LIMIT_SERVE_BACKSTOP_S 60         /* after its lifetime the kernel ends a room, when nobody else has */
#define LIMIT_SERVE_BUCKETS 4096          /* of the sandboxes that are found by their ids */
#define LIMIT_SERVE_DUE 100               /* removals that are begun at once */
#define LIMIT_SERVE_TICK_MS 1000          /* between looks at deadlines and retentions */
#define LIMIT_SERVE_RETRY_S 5           /* before a removal that has failed is tried again; twice that each time, ... */
#define LIMIT_SERVE_RETRY_MAX_S 600     /* ... and no more than this */
#define LIMIT_SERVE_ALERTS 64           /* that wait for the webhook */
#define LIMIT_SERVE_ALERT_TRIES 4       /* of one */
#define LIMIT_SERVE_ALERT_RETRY_MS 2000 /* before the second; then twice as long each time */
#define LIMIT_SERVE_LINE MIB(1)         /* bytes of one line of them */
#define LIMIT_SERVE_POLICY KIB(64) /* bytes of a policy that comes with a request: it is loaded while others wait */
#define LIMIT_SERVE_CONNS_OWN 128  /* connections of LIMIT_SERVE_CONNS that TCP can't have */
#define LIMIT_SERVE_STRANGERS 64   /* over TCP without a token so far; of more, the oldest is closed */
#define LIMIT_SERVE_HEAD_S 10      /* all of a head, from its first byte; of a stranger, from the beginning */
#define LIMIT_SERVE_READS 16       /* pieces of a file that are read for one client before others get their turn */
#define LIMIT_SERVE_ANSWERS 10000  /* to idempotency keys that are remembered, ... */
#define LIMIT_SERVE_ANSWER_BYTES MIB(128)   /* ... and bytes of them; beyond that the oldest are forgotten */
#define LIMIT_SERVE_RECORD_S (30 * 86400ll) /* that the record of a deleted sandbox stays after its end, ... */
#define LIMIT_SERVE_USED_S (400 * 86400ll)  /* ... and its numbers, from its creation */
#define LIMIT_SERVE_VARIABLE \
	KIB(64)                     /* bytes of the value of a variable; the kernel has 128 KiB for one with its name */
#define LIMIT_SERVE_VARIABLES 128   /* of a sandbox, beside those of the room itself */
#define LIMIT_SERVE_SPEC KIB(512)   /* bytes of command and variables; what a keeper is told beside them is small */
#define LIMIT_SERVE_WARM 64         /* rooms that stand ready for a profile, ... */
#define LIMIT_SERVE_WARM_ALL 256    /* ... and for all */
#define LIMIT_SERVE_WARM_MAKING 2   /* of them that are made at the same time */
#define LIMIT_SERVE_WARM_AGE_S 3600 /* that one stands, unless the configuration says otherwise, ... */
#define LIMIT_SERVE_WARM_AGE_MAX_S 86400    /* ... and the most that it may say */
#define LIMIT_SERVE_WARM_RETRY_MS 1000      /* after one was lost, before another is made; twice that each time, ... */
#define LIMIT_SERVE_WARM_RETRY_MAX_MS 60000 /* ... and no more than this */
#define LIMIT_SERVE_WARM_REST_MS 100        /* from giving one away to making another: its command comes first */
#define LIMIT_SERVE_POOLS_MS 60000          /* after pools in Azure could not be made, before it is tried again */
#define LIMIT_SERVE_FORGET 1000             /* records that are forgotten at once */
#define LIMIT_SERVE_POOLS_RUN_MS 3600000    /* of cage-aci pools: Azure takes its time to remove one */

/* What a request of its API may say */
#define LIMIT_SERVE_WORDS 1000          /* of a command */
#define LIMIT_SERVE_START_FILES 1000    /* that a sandbox begins with */
#define LIMIT_SERVE_DOMAINS 1000        /* of an allowlist */
#define LIMIT_SERVE_DOMAIN 255          /* bytes of one */
#define LIMIT_SERVE_PATTERNS 100        /* of blocked commands */
#define LIMIT_SERVE_PATTERN 1000        /* bytes of one, ... */
#define LIMIT_SERVE_REGEX_SIZE KIB(16)  /* ... and when it is compiled */
#define LIMIT_SERVE_VARIABLE_NAME 128   /* bytes */
#define LIMIT_SERVE_WORKDIR 1000        /* bytes, of a tool call */
#define LIMIT_SERVE_URL 8000            /* bytes, likewise */
#define LIMIT_SERVE_ORDER KIB(1023)     /* bytes of a request to the web as JSON; beside it cage-fetch is told little */
#define LIMIT_SERVE_METHOD 32           /* bytes, likewise */
#define LIMIT_SERVE_FIELDS 100          /* header fields, likewise */
#define LIMIT_SERVE_FIELD 8000          /* bytes of the value of one, ... */
#define LIMIT_SERVE_FIELD_NAME 256      /* ... and of its name */
#define LIMIT_SERVE_PAGE_DEFAULT 100    /* sandboxes in one answer, unless more are asked for */
#define LIMIT_SERVE_PROBLEM 600         /* bytes of the sentence that says what is wrong */
#define LIMIT_SERVE_ARENA KIB(256)      /* bytes of a request's head, taken apart */
#define LIMIT_SERVE_FILE_STALL_MS 10000 /* that nothing of a file comes out of a sandbox, or goes into it, ... */
#define LIMIT_SERVE_FILE_MS 600000      /* ... and all of it */
#define LIMIT_SERVE_UNREAD_MS 10        /* before a client that has not read is looked at again */
#define LIMIT_SERVE_RELOAD_MS 15000     /* until a sandbox has taken another policy */
#define LIMIT_SERVE_DRAIN_MS 5000       /* at the end of the service, for what is under way */

/* Clients of cage serve */
#define LIMIT_CLIENT_TOKEN 256 /* bytes of the API's token */
#define LIMIT_CLIENT_TARGET \
	KIB(14) /* a path and a query, escaped; the service takes no more than 4000 bytes of a file's */
#define LIMIT_CLIENT_JSON MIB(64)    /* bytes of an answer that is read as a whole */
#define LIMIT_CLIENT_TEXT MIB(16)    /* bytes of one file that is a part of a request: a policy, a text of --file */
#define LIMIT_CLIENT_EVENT MIB(1)    /* of one server-sent event */
#define LIMIT_CLIENT_EVENT_NAME 32   /* of its kind */
#define LIMIT_CLIENT_PIECE KIB(64)   /* of a file that are sent at once */
#define LIMIT_CLIENT_CONNECT_MS 5000 /* until the service takes a connection */
#define LIMIT_CLIENT_ANSWER_MS 60000 /* from the end of a request to its answer; of a tool call, beyond its own time */
#define LIMIT_CLIENT_IDLE_MS 60000   /* between two reads of an answer, or two writes of a request */
#define LIMIT_CLIENT_FOLLOW_MS \
	60000 /* the same of what is followed, where the service says each 15 s that it is there */
#define LIMIT_CLIENT_KEEPALIVE_S 15 /* between looks whether the other end of a connection that is followed is there */
#define LIMIT_CLIENT_POLL_MS 50     /* between looks at a sandbox that is waited for, at first, ... */
#define LIMIT_CLIENT_POLL_MOST_MS 500 /* ... and when it takes long */
#define LIMIT_CLIENT_PAGE 1000        /* sandboxes in one answer */
#define LIMIT_CLIENT_CELL 512         /* bytes that are shown of one value in a table */
#define LIMIT_CLIENT_COLUMNS 12       /* of a table */
#define LIMIT_CLIENT_TOOL_S 3600      /* the longest tool call */
#define LIMIT_CLIENT_LIFE_S 2592000   /* the longest life of a sandbox: 30 days */

/* cage.internal */
#define LIMIT_PAGE_FILE KIB(64)

/* Admin */
#define LIMIT_ADMIN_CONNS 32
#define LIMIT_ADMIN_MS 5000      /* all of one connection */
#define LIMIT_ADMIN_BODY KIB(64) /* bytes of an answer */

/* Workflows of the service. */
#define LIMIT_WORKFLOW_STEPS 64              /* of one */
#define LIMIT_WORKFLOW_NEEDS 64              /* of one step */
#define LIMIT_WORKFLOW_ARTIFACTS 32          /* likewise: files that it hands on */
#define LIMIT_WORKFLOW_INPUTS 64             /* likewise: files that it is handed */
#define LIMIT_WORKFLOW_PATH 1000             /* bytes of the path of one */
#define LIMIT_WORKFLOW_NAME 255              /* bytes of the name of a workflow */
#define LIMIT_WORKFLOW_BYTES MIB(256)        /* of an artifact, ... */
#define LIMIT_WORKFLOW_BYTES_DEFAULT MIB(16) /* ... unless more are asked for, ... */
#define LIMIT_WORKFLOW_BYTES_ALL MIB(1024)   /* ... and of all that a workflow may come to store */
#define LIMIT_WORKFLOW_TRIES 60 /* of making a sandbox, or storing artifacts, where the service can't for now */
#define LIMIT_WORKFLOWS 256     /* that are not at their end; one more is refused */

/* Entering a container that shares a network (cage-inside --enter). */
#define LIMIT_ENTER_S 120        /* until the proxy has to answer */
#define LIMIT_ENTER_ASK_S 5      /* for one answer */
#define LIMIT_ENTER_AGAIN_MS 200 /* between two questions */
#define LIMIT_ENTER_CA KIB(64)   /* of an answer */
#define LIMIT_GIVEN KIB(512)     /* bytes of the text that a container which stood ready is given, ... */
#define LIMIT_GIVEN_PATH 256     /* ... and of a path in it */
#define LIMIT_AWAIT_S 2592000    /* that one stands: whoever has made it ends it sooner */
#define LIMIT_AWAIT_WHOLE_S 60   /* from the first byte of that text to all of it */
#define LIMIT_AWAIT_LOOK_MS 50   /* between two looks for it */

/* Azure's management API. */
#define LIMIT_ARM_URL 8192             /* bytes of an address, with its NUL: those of operations carry a certificate */
#define LIMIT_ARM_BODY MIB(32)         /* of an answer: 4 MB of log, escaped */
#define LIMIT_ARM_TOKEN 16384          /* bytes of a token */
#define LIMIT_ARM_TOKEN_EARLY_S 300    /* before its end a token is not used any more */
#define LIMIT_ARM_CONNECT_MS 10000     /* until a connection stands */
#define LIMIT_ARM_CALL_MS 60000        /* of one exchange */
#define LIMIT_ARM_TIME_MS 600000       /* of a call with all its tries */
#define LIMIT_ARM_CHECK_MS 20000       /* of one of a check: somebody sits and waits for it */
#define LIMIT_ARM_TRIES 12             /* of a call */
#define LIMIT_ARM_WAIT_MS 60000        /* between two of them, whatever the service asks for */
#define LIMIT_ARM_POLL_MS 2000         /* between two looks at an operation, unless the service says otherwise */
#define LIMIT_ARM_ABSENT 15            /* looks in a row at what was made and is not seen, before that is believed */
#define LIMIT_ARM_OPERATION_MS 1800000 /* of an operation */
#define LIMIT_ARM_LOOK_MS 1000         /* between looks at clocks */
#define LIMIT_ARM_AZ_MS 30000          /* of az account get-access-token */
#define LIMIT_ARM_AZ_LIFE_S 1200       /* after which it is asked again */

/* Container groups of Azure. */
#define LIMIT_ACI_LOOKS 5      /* for a group of which nobody knows whether it was made */
#define LIMIT_ACI_LOOK_MS 2000 /* between two looks at one that runs */
#define LIMIT_ACI_LAST_LOOKS 5 /* at a log, when its sandbox has ended and lines of it can't be kept */
#define LIMIT_ACI_PASS_MS 200  /* of a pass of the loop */
#define LIMIT_ACI_PAGES 1000   /* of a list */
#define LIMIT_ACI_MORE 32      /* answers of a gateway at one look at its log; the next goes on where it was */
#define LIMIT_ACI_POOLS 64     /* standby pools of a service, wanted or not */
#define LIMIT_ACI_POOL 1000    /* groups that stand in one of them */
#define LIMIT_ACI_EVENTS 1000  /* of a container that are looked at */
#define LIMIT_ACI_SHARE 1000   /* processors, and GB, of a group: Azure has 31 and 240 */

/* What Azure measures of them. */
#define LIMIT_METRICS_ASKED 200   /* steps that are asked for at once; longer ones where it would be more */
#define LIMIT_METRICS_POINTS 1000 /* of an answer that are looked at */
#define LIMIT_METRICS_MS 60000    /* between two questions */
#define LIMIT_METRICS_SKEW_S 600  /* that the clock of Azure may differ from ours */

/* Measuring how fast they come (cage bench aci). */
#define LIMIT_BENCH_RUNS 100     /* groups that are made, ... */
#define LIMIT_BENCH_PARALLEL 10  /* ... and of them at the same time */
#define LIMIT_BENCH_RUN_S 600    /* of one, before it is removed as it is */
#define LIMIT_BENCH_LOOK_MS 1000 /* between two looks at one */

/* Deployments to Azure. */
#define LIMIT_DEPLOY_BODY MIB(4)      /* bytes of a deployment that Azure takes */
#define LIMIT_DEPLOY_NAME 256         /* bytes of the name of a parameter, with its NUL */
#define LIMIT_DEPLOY_SECURE_LEAST 8   /* bytes of a secure value: a shorter one can't be told from other text */
#define LIMIT_DEPLOY_ROWS 800         /* resources that are shown: more has no deployment */
#define LIMIT_DEPLOY_ITEMS 100000     /* of a list */
#define LIMIT_DEPLOY_DRAW_MS 500      /* between two drawings of the same */
#define LIMIT_DEPLOY_NESTED 8         /* errors in errors, calls in calls */
#define LIMIT_DEPLOY_ARGUMENTS 8      /* of a function in a name that a plan works out */
#define LIMIT_DEPLOY_DETAILS 100      /* errors of one error */
#define LIMIT_DEPLOY_LOOK_MS 3000     /* between two looks at a deployment */
#define LIMIT_DEPLOY_MS 14400000      /* that one is watched */
#define LIMIT_DEPLOY_STARTS 8         /* of a deployment that another one is in the way of, or whose answer is lost */
#define LIMIT_DEPLOY_REMOVALS 8       /* resources that are removed at the same time */
#define LIMIT_DEPLOY_ROUNDS 40        /* of removing what nothing else needs any more, ... */
#define LIMIT_DEPLOY_IDLE_ROUNDS 3    /* ... of which so many may remove nothing */
#define LIMIT_DEPLOY_ROUND_MS 5000    /* before such a round */
#define LIMIT_DEPLOY_CANCEL_MS 600000 /* that the end of a canceled one is waited for */

/* Bytes of one text that are decoded to find values which were sent: of a longer one nothing is shown. */
#define LIMIT_AZURE_DECODED MIB(16)

/* What is in one. */
#define LIMIT_ACI_FILES MIB(1)  /* bytes of the files that an agent begins with, and of what is said of them */
#define LIMIT_ACI_PASSWORD 4096 /* bytes, of a registry */
#define LIMIT_ACI_STOP_MS 4000  /* from the stop of one to its removal; its keeper waits a second more */

/* Shipping of decision logs (cage-ship). */
#define LIMIT_SHIP_BATCH 1000000  /* bytes of a request before it is compressed: Azure takes 1 MB */
#define LIMIT_SHIP_LINE KIB(64)   /* bytes of a line; cage writes none of more than 49 KiB */
#define LIMIT_SHIP_PIECE KIB(256) /* of a file that are read at once */
#define LIMIT_SHIP_STREAM 256     /* of the name of a stream */
#define LIMIT_SHIP_ROOTS 64       /* files and directories that are named */
#define LIMIT_SHIP_LOGS 16384     /* files that are followed, ... */
#define LIMIT_SHIP_OPEN 256       /* ... and held open */
#define LIMIT_SHIP_ENTRIES 100000 /* of directories, in one look at them */
#define LIMIT_SHIP_PLACE 256      /* bytes of what is kept of one file */
#define LIMIT_SHIP_AGE_S 5        /* that a line waits for others, unless the command line says otherwise, ... */
#define LIMIT_SHIP_AGE_MAX_S 3600 /* ... and the most that it may say */
#define LIMIT_SHIP_LOOK_MS 500    /* between looks at files, ... */
#define LIMIT_SHIP_SCAN_MS 2000   /* ... and at directories */
#define LIMIT_SHIP_MISSED 3       /* of the latter, before a file that is not there is forgotten */
#define LIMIT_SHIP_STORE_MS 1000  /* after a place that could not be written */
#define LIMIT_SHIP_STATUS_MS 5000 /* between two states of --status */
#define LIMIT_SHIP_SAY_MS 60000   /* between two messages about the same trouble */
#define LIMIT_SHIP_END_MS 5000    /* for an answer that is under way at the end */

/* Shipping by the service. */
#define LIMIT_SERVE_SHIP_RETRY_MS \
	1000 /* after cage-ship has ended, before it is started again; twice that each time, ... */
#define LIMIT_SERVE_SHIP_RETRY_MAX_MS 60000 /* ... and no more than this */
#define LIMIT_SERVE_SHIP_TRIM_MS 10000      /* between looks at the logs that are kept for it */
#define LIMIT_SERVE_SHIP_KEPT 20000         /* of them that are looked at */
#define LIMIT_SERVE_SHIP_BYTES MIB(1024)    /* of them, unless the configuration says otherwise */
#define LIMIT_SERVE_SHIP_S 604800           /* that one is kept, unless it does, ... */
#define LIMIT_SERVE_SHIP_MAX_S 31536000     /* ... and the most that it may say */

/* cage-relay. */
#define LIMIT_RELAY_CARRIES 4           /* places that it listens on */
#define LIMIT_RELAY_LINKS 256           /* connections at once; more wait in the kernel */
#define LIMIT_RELAY_BUFFER KIB(16)      /* bytes of one that wait, in each direction */
#define LIMIT_RELAY_CONNECT_MS 10000    /* until the other side has answered */
#define LIMIT_RELAY_ALIVE_S 30          /* of silence, before the other side is asked whether it is there, ... */
#define LIMIT_RELAY_ALIVE_ASKED 3       /* ... so many times, ... */
#define LIMIT_RELAY_UNANSWERED_MS 60000 /* ... and the most that what was sent waits for it */

/* cage-gateway. */
#define LIMIT_GATEWAY_CONNS 64             /* of its intake; of more, the oldest without a token is closed */
#define LIMIT_GATEWAY_ASK_MS 10000         /* all of a request, from the connection on */
#define LIMIT_GATEWAY_ANSWER_MS 95000      /* until it is answered: changes are made one after the other */
#define LIMIT_GATEWAY_SEND_MS 30000        /* until an answer is taken */
#define LIMIT_GATEWAY_BODY KIB(512)        /* bytes of a request: a policy of LIMIT_GATEWAY_POLICY, escaped */
#define LIMIT_GATEWAY_POLICY KIB(64)       /* bytes of a policy */
#define LIMIT_GATEWAY_PATTERNS 64          /* formats of credentials that it adds (inspectors.secrets.extra), ... */
#define LIMIT_GATEWAY_PATTERN_BYTES KIB(8) /* ... and bytes of all of them: each takes time to compile */
#define LIMIT_GATEWAY_CHECK_S 2       /* of computing that its check may take, and so each time it is loaded, ... */
#define LIMIT_GATEWAY_CHECK_MS 15000  /* ... and of waiting for that, and for its placeholders again */
#define LIMIT_GATEWAY_HEAD KIB(8)     /* bytes of a head */
#define LIMIT_GATEWAY_ARENA KIB(64)   /* bytes of one, taken apart */
#define LIMIT_GATEWAY_TOKEN 512       /* bytes of the intake's token, with its NUL, ... */
#define LIMIT_GATEWAY_TOKEN_MIN 32    /* ... and the fewest */
#define LIMIT_GATEWAY_PATH 4096       /* bytes of a path */
#define LIMIT_GATEWAY_CHANGES 256     /* that wait */
#define LIMIT_GATEWAY_RELOAD_MS 30000 /* until the proxy has read its sandboxes, ... */
#define LIMIT_GATEWAY_SETTLE_MS 10000 /* ... and its workers have them, ... */
#define LIMIT_GATEWAY_LOOK_MS 20      /* ... which is asked so often */
#define LIMIT_GATEWAY_START_MS \
	60000 /* until the proxy answers at all, and LIMIT_GATEWAY_CHECK_S more for each sandbox */
#define LIMIT_GATEWAY_ADMIN_MS 5000      /* of one answer of the proxy's admin port */
#define LIMIT_GATEWAY_TICK_MS 200        /* between looks at the log */
#define LIMIT_GATEWAY_LOG_BYTES MIB(64)  /* of one file of it, unless options say otherwise, ... */
#define LIMIT_GATEWAY_LOG_LEAST KIB(4)   /* ... the least that they may say, ... */
#define LIMIT_GATEWAY_LOG_FILES 8        /* ... old ones that are kept, ... */
#define LIMIT_GATEWAY_LOG_FILES_MAX 64   /* ... and the most of them */
#define LIMIT_GATEWAY_LOG_PIECE MIB(1)   /* that is read of it at once: longer lines are left out */
#define LIMIT_GATEWAY_LOG_SCAN MIB(16)   /* bytes that are looked through for one answer, ... */
#define LIMIT_GATEWAY_LOG_ANSWER MIB(4)  /* ... and that are in it */
#define LIMIT_GATEWAY_COPY_PIECES 16     /* pieces that are copied to stdout before others get their turn */
#define LIMIT_GATEWAY_COPY_PIECE KIB(64) /* bytes of one */
#define LIMIT_GATEWAY_ERRORS 32          /* lines that are told of a bad policy */
#define LIMIT_GATEWAY_WHY 1024           /* bytes of why a sandbox is shut */
#define LIMIT_GATEWAY_LEAVE_TRIES 4      /* of what it is told at the end of a sandbox: who sweeps tells it again */
#define LIMIT_GATEWAY_DIR 256            /* bytes of the path of a directory in its state */
#define LIMIT_GATEWAY_STATE 92           /* bytes of the path of that: there is a socket in it */
#define LIMIT_GATEWAY_COPY_END_MS 5000   /* of what is left for stdout at the end */
#define LIMIT_RELOAD_LINE KIB(80)        /* bytes of what a proxy says of a reload: LIMIT_SANDBOXES ids, ... */
#define LIMIT_RELOAD_PIPE KIB(128)       /* ... and of the pipe that takes it at once */

/* Of a call of its intake: who asks waits longer than the gateway does. */
#define LIMIT_GATEWAY_CALL_MS 110000

#endif
