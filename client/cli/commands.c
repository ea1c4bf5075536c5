#include "cli.h"

/* Every command there is, in the order in which help shows them. */

const struct tarn_cli_option tarn_cli_global_options[] = {
    {"server", 0, "HOST:PORT", "the daemon; else $TARN_SERVER, else 127.0.0.1:7420", false},
    {"token-file", 0, "FILE", "file with a token; else the token in $TARN_TOKEN", false},
    {"ca", 0, "FILE", "use TLS; the authority that signed the server's certificate", false},
    {"cert", 0, "FILE", "our certificate, where the server asks for one", false},
    {"key", 0, "FILE", "its key", false},
    {"output", 'o', "FORMAT", "table (at a terminal), json (else), jsonl or csv", false},
    {"timeout", 0, "TIME", "give up after so many seconds, or \"2 min\"", false},
    {"verbose", 'v', NULL, "tell of each call, and more of errors", true},
    {"help", 'h', NULL, "what a command does", false},
    {"version", 0, NULL, "the version of this program", false},
    {0},
};

#define NOT_YET(name)                                                                              \
    {                                                                                              \
        name, "", 0, -1, NULL, NULL, "", NULL                                                      \
    }

const struct tarn_cli_command tarn_cli_commands[] = {
    {"status", "", 0, 0, NULL, tarn_cli_status, "the daemon, its workers and its queue", NULL},
    {"smoke", "", 0, 0, NULL, tarn_cli_smoke,
     "create, insert, read, drop: does it work, with this account?",
     "Makes a database of its own (tarn_smoke_...) with a table, loads rows, reads them back and\n"
     "drops both. The first step that fails is named, with the reason."},

    {"db create", "NAME", 1, 1, tarn_cli_db_create_options, tarn_cli_db_create, "make a database",
     NULL},
    {"db list", "", 0, 0, NULL, tarn_cli_db_list, "the databases", NULL},
    {"db show", "NAME", 1, 1, NULL, tarn_cli_db_show, "one database and its options", NULL},
    {"db alter", "NAME", 1, 1, tarn_cli_db_alter_options, tarn_cli_db_alter,
     "set or remove options of a database", NULL},
    {"db drop", "NAME", 1, 1, tarn_cli_db_drop_options, tarn_cli_db_drop, "drop a database", NULL},

    {"table create", "DATABASE.TABLE", 1, 1, tarn_cli_table_create_options, tarn_cli_table_create,
     "make a table",
     "Where the columns come from: one of --columns, --like, --schema-file and --from-file.\n\n"
     "  tarn table create shop.orders --columns 'id BIGINT NOT NULL, item STRING, dt DATE' \\\n"
     "       --primary-key id,dt --partition-by dt --option bucket=2\n"
     "  tarn table create shop.visits --from-file visits.parquet"},
    {"table list", "[DATABASE]", 0, 1, NULL, tarn_cli_table_list,
     "the tables of a database, or of all", NULL},
    {"table show", "DATABASE.TABLE", 1, 1, NULL, tarn_cli_table_show,
     "columns, keys, options of a table", NULL},
    {"table alter", "DATABASE.TABLE", 1, 1, tarn_cli_table_alter_options, tarn_cli_table_alter,
     "change options or columns; all that is named, or nothing",
     "Changes are made in the order in which they are given. A column inside another is named by names with dots\n"
     "between: ROW fields by theirs, the elements of an ARRAY by element, the values of a MAP by value. Names that hold\n"
     "dots, blanks or = stand in backquotes.\n\n"
     "  tarn table alter shop.orders --add-column 'note STRING' --after item\n"
     "  tarn table alter shop.orders --alter-type 'amount DECIMAL(20, 2)' --set target-file-size=64mb\n"
     "  tarn table alter shop.orders --add-column 'address.zip STRING' --move-column note --last"},
    {"table rename", "DATABASE.TABLE NEW_NAME", 2, 2, NULL, tarn_cli_table_rename,
     "give a table another name, or another database", NULL},
    {"table register", "DATABASE.TABLE URI", 2, 2, NULL, tarn_cli_table_register,
     "make a table known that others put into the warehouse",
     "It lies in the folder of its name, DATABASE.db/TABLE; those that are listed or named are found by themselves.\n\n"
     "  tarn table register shop.orders s3://lake/warehouse/shop.db/orders"},
    {"table replace", "DATABASE.TABLE", 1, 1, tarn_cli_table_replace_options,
     tarn_cli_table_replace, "another schema for a table, whose rows go",
     "Its history, tags and branches stay, so the rows can be had again: tarn rollback. The columns it is partitioned by\n"
     "stay, too. Writers that are open have to be started anew.\n\n"
     "  tarn table replace shop.orders --columns 'id STRING NOT NULL, item STRING' --primary-key id"},
    {"table drop", "DATABASE.TABLE", 1, 1, tarn_cli_table_drop_options, tarn_cli_table_drop,
     "drop a table with its data", NULL},

    {"view create", "DATABASE.VIEW", 1, 1, tarn_cli_object_create_options, tarn_cli_view_create,
     "make a view, for engines that read it through a catalog",
     "The file is a JSON object with query and fields, and maybe dialects, comment and options, as Paimon's REST\n"
     "catalog has them (schema of a view).\n\n"
     "  tarn view create shop.recent --file recent.json"},
    {"view list", "[DATABASE]", 0, 1, NULL, tarn_cli_view_list,
     "the views of a database, or of all", NULL},
    {"view show", "DATABASE.VIEW", 1, 1, NULL, tarn_cli_view_show, "a view, as it was made", NULL},
    {"view alter", "DATABASE.VIEW", 1, 1, tarn_cli_view_alter_options, tarn_cli_view_alter,
     "change options, comment or dialects; all that is named, or nothing",
     "Changes are made in the order in which they are given.\n\n"
     "  tarn view alter shop.recent --update-dialect 'spark=SELECT * FROM shop.orders' --comment new"},
    {"view rename", "DATABASE.VIEW NEW_NAME", 2, 2, NULL, tarn_cli_view_rename,
     "give a view another name, or another database", NULL},
    {"view drop", "DATABASE.VIEW", 1, 1, tarn_cli_object_drop_options, tarn_cli_view_drop,
     "drop a view", NULL},
    {"function create", "DATABASE.FUNCTION", 1, 1, tarn_cli_object_create_options,
     tarn_cli_function_create, "make a function, for engines that call it through a catalog",
     "The file is a JSON object with maybe inputParams, returnParams, deterministic, definitions, comment and\n"
     "options, as Paimon's REST catalog has them.\n\n"
     "  tarn function create shop.area --file area.json"},
    {"function list", "[DATABASE]", 0, 1, NULL, tarn_cli_function_list,
     "the functions of a database, or of all", NULL},
    {"function show", "DATABASE.FUNCTION", 1, 1, NULL, tarn_cli_function_show,
     "a function, as it was made", NULL},
    {"function alter", "DATABASE.FUNCTION", 1, 1, tarn_cli_function_alter_options,
     tarn_cli_function_alter,
     "change options, comment or definitions; all that is named, or nothing",
     "Changes are made in the order in which they are given. A definition is a JSON object.\n\n"
     "  tarn function alter shop.area --add-definition 'spark={\"type\":\"sql\",\"definition\":\"x * y\"}'"},
    {"function rename", "DATABASE.FUNCTION NEW_NAME", 2, 2, NULL, tarn_cli_function_rename,
     "give a function another name, or another database", NULL},
    {"function drop", "DATABASE.FUNCTION", 1, 1, tarn_cli_object_drop_options,
     tarn_cli_function_drop, "drop a function", NULL},

    {"load", "DATABASE.TABLE FILE...|-", 2, -1, tarn_cli_load_options, tarn_cli_load,
     "put the rows of files into a table, in one commit",
     "Columns are matched by name (CSV has a header line); a missing one that may be null is null.\n"
     "The format is told by the name: .csv .tsv .jsonl .ndjson .parquet .arrow .feather .orc;\n"
     "standard input (-) needs --format. Either all rows are committed or none.\n\n"
     "  tarn load shop.orders orders-*.csv\n"
     "  gunzip -c orders.csv.gz | tarn load shop.orders - --format csv --null NA --skip-bad 10"},
    {"scan", "DATABASE.TABLE", 1, 1, tarn_cli_scan_options, tarn_cli_scan, "read rows",
     "  tarn scan shop.orders --where \"dt = DATE '2026-01-31' AND amount > 10\" --limit 20\n"
     "  tarn scan shop.orders --columns id,item -o parquet --to orders.parquet"},

    {"watch", "DATABASE.TABLE", 1, 1, tarn_cli_watch_options, tarn_cli_watch,
     "the changelog as it is committed; Ctrl-C ends it",
     "Rows carry rowkind in front: +I, -U (before), +U (after), -D. A lost connection is made again and\n"
     "nothing is left out or printed twice. A consumer stands behind what was printed, also for other\n"
     "engines, whose expiry keeps what it has not read; a snapshot that --limit cuts short is printed again.\n"
     "Each event of --events -o jsonl has a resume_token: --resume goes on behind it.\n\n"
     "  tarn watch shop.orders --from earliest -o jsonl\n"
     "  tarn watch shop.orders --consumer billing --where \"amount > 100\"\n"
     "  tarn watch shop.orders --events -o jsonl --resume 0312f4..."},
    {"consumer list", "DATABASE.TABLE", 1, 1, NULL, tarn_cli_consumer_list,
     "readers whose positions the table keeps", NULL},
    {"consumer set", "DATABASE.TABLE ID", 2, 2, tarn_cli_consumer_set_options,
     tarn_cli_consumer_set, "move a consumer, or make one", NULL},
    {"consumer drop", "DATABASE.TABLE ID", 2, 2, NULL, tarn_cli_consumer_drop,
     "forget a consumer: expiry needn't wait for it any more", NULL},

    {"files", "DATABASE.TABLE", 1, 1, tarn_cli_files_options, tarn_cli_files,
     "the data files of a version", NULL},
    {"snapshots", "DATABASE.TABLE", 1, 1, tarn_cli_snapshots_options, tarn_cli_snapshots,
     "the versions of a table, oldest first", NULL},
    {"commits", "DATABASE.TABLE", 1, 1, tarn_cli_commits_options, tarn_cli_commits,
     "whether a commit landed, and what a commit user has committed last",
     "  tarn commits shop.orders --user orders-job --id 42"},
    {"partitions", "DATABASE.TABLE", 1, 1, tarn_cli_version_options, tarn_cli_partitions,
     "partitions with rows, files and bytes", NULL},
    {"partitions create", "DATABASE.TABLE K=V[,K=V]...", 2, -1, tarn_cli_partitions_create_options,
     tarn_cli_partitions_create, "make partitions without files, for engines that list them",
     "  tarn partitions create shop.orders dt=2026-01-31,hour=3 dt=2026-01-31,hour=4"},
    {"partitions mark", "DATABASE.TABLE K=V[,K=V]...", 2, -1, tarn_cli_partitions_mark_options,
     tarn_cli_partitions_mark, "say that partitions are done: all of their rows are there",
     "Columns that aren't named: any value. Who waits for a partition asks whether it is marked; nothing else\n"
     "changes, and rows may still come.\n\n"
     "  tarn partitions mark shop.orders dt=2026-01-31"},
    {"partitions drop", "DATABASE.TABLE K=V[,K=V]...", 2, -1, tarn_cli_partitions_drop_options,
     tarn_cli_partitions_drop, "drop partitions with all of their rows, in one commit",
     "Columns that aren't named: any value.\n\n"
     "  tarn partitions drop shop.orders dt=2025-01-31 dt=null"},
    {"buckets", "DATABASE.TABLE", 1, 1, tarn_cli_version_options, tarn_cli_buckets,
     "buckets with their sorted runs", NULL},
    {"schemas", "DATABASE.TABLE", 1, 1, NULL, tarn_cli_schemas, "the schemas a table has had",
     NULL},
    {"manifests", "DATABASE.TABLE", 1, 1, tarn_cli_version_options, tarn_cli_manifests,
     "the manifests of a version", NULL},
    {"options", "DATABASE.TABLE", 1, 1, tarn_cli_options_options, tarn_cli_options,
     "options with their defaults and effect", NULL},
    {"plan", "DATABASE.TABLE", 1, 1, tarn_cli_plan_options, tarn_cli_plan,
     "what a scan would read, and what it would leave out", NULL},

    {"tag list", "DATABASE.TABLE", 1, 1, NULL, tarn_cli_tag_list, "the tags of a table", NULL},
    {"tag create", "DATABASE.TABLE NAME", 2, 2, tarn_cli_tag_create_options, tarn_cli_tag_create,
     "give a version a name, which keeps it from expiry",
     "  tarn tag create shop.orders before-migration --keep 30d"},
    {"tag drop", "DATABASE.TABLE NAME", 2, 2, NULL, tarn_cli_tag_drop, "forget a tag", NULL},
    {"branch list", "DATABASE.TABLE", 1, 1, NULL, tarn_cli_branch_list, "the branches of a table",
     NULL},
    {"branch create", "DATABASE.TABLE NAME", 2, 2, tarn_cli_branch_create_options,
     tarn_cli_branch_create, "a second history beside a table's, which shares its files",
     "  tarn tag create shop.orders v1 && tarn branch create shop.orders try --tag v1\n"
     "  tarn load 'shop.orders$branch_try' orders.csv"},
    {"branch rename", "DATABASE.TABLE NAME NEW", 3, 3, NULL, tarn_cli_branch_rename,
     "give a branch another name", NULL},
    {"branch drop", "DATABASE.TABLE NAME", 2, 2, NULL, tarn_cli_branch_drop, "forget a branch",
     NULL},
    {"branch fast-forward", "DATABASE.TABLE NAME", 2, 2, NULL, tarn_cli_branch_fast_forward,
     "make a branch's history that of its table",
     "What the table has from where they part on is undone, as by tarn rollback."},
    {"rollback", "DATABASE.TABLE", 1, 1, tarn_cli_rollback_options, tarn_cli_rollback,
     "undo all that was committed behind a version",
     "Snapshots behind it go, and tags of them; what was committed under their identities can be sent\n"
     "again. Writers are refused nothing, but a job that goes on from its own state doesn't write again\n"
     "what was undone: restore it from a savepoint of that time.\n\n"
     "  tarn rollback shop.orders --to-time 2026-01-31T06:00:00Z --dry-run"},
    {"schema rollback", "DATABASE.TABLE", 1, 1, tarn_cli_schema_rollback_options,
     tarn_cli_schema_rollback, "undo changes of a schema that nothing was written by",
     "  tarn schema rollback shop.orders --to 3"},

    {"compact", "DATABASE.TABLE", 1, 1, tarn_cli_compact_options, tarn_cli_compact,
     "merge the files of a table",
     "  tarn compact shop.orders --full --partition dt=2026-01-31 --wait"},
    {"rescale", "DATABASE.TABLE", 1, 1, tarn_cli_rescale_options, tarn_cli_rescale,
     "give a table with fixed buckets another number of them",
     "Sets option bucket, and rewrites the partitions to it, each in one commit. Reads and loads go on: a partition has its old buckets until\n"
     "all of it is in the new ones; what is loaded into it meanwhile makes its rewriting begin anew. Writers that aren't told\n"
     "(Flink, Spark) get BUCKET_MISMATCH, and restart. Ended in between, asked again it goes on with what is left.\n\n"
     "  tarn rescale shop.orders --buckets 16\n"
     "  tarn rescale shop.orders --buckets 16 --partition dt=2026-01-31"},
    {"advise", "DATABASE.TABLE", 1, 1, tarn_cli_advise_options, tarn_cli_advise,
     "what other settings would do to a primary-key table",
     "Replays what the retained snapshots loaded, with the settings of now and with better ones: buckets (by size, and by what one\n"
     "compaction at a time can do), writers (as many), num-sorted-run.compaction-trigger, target-file-size. For each: the files at the\n"
     "end, the bytes written for each byte loaded, and the sorted runs that a read merges as a mean. What makes reads slow now is named.\n\n"
     "  tarn advise shop.orders"},
    {"delete", "DATABASE.TABLE", 1, 1, tarn_cli_delete_options, tarn_cli_delete,
     "delete rows of an append table",
     "The files stay, with deletion vectors that mark the rows; compaction leaves those out later. The table needs the option\n"
     "deletion-vectors.enabled = true. Rows of tables with a primary key are deleted by key: tarn load --mode delete.\n\n"
     "  tarn delete shop.events --where \"user_id = 7\""},
    {"expire", "DATABASE.TABLE", 1, 1, tarn_cli_expire_options, tarn_cli_expire,
     "remove old snapshots, and the files that only they need",
     "Which are old is said by the table's options (snapshot.num-retained.min and .max, snapshot.time-retained), or here. What a\n"
     "tag, a branch, a consumer or a pin needs stays. The daemon does it by itself for the tables that it maintains.\n\n"
     "  tarn expire shop.orders --keep-last 100 --dry-run"},
    {"adopt", "[TARGET...]", 0, -1, tarn_cli_adopt_options, tarn_cli_adopt,
     "take tables that others made in the warehouse, and say what would not work",
     "A target is a database, DATABASE.TABLE, or a folder of one: an URI, or a path with a slash, from the root or below\n"
     "the warehouse's; --all: every database. Nothing that others wrote is changed: a table's folder gets the object\n"
     ".tarn-table (uuid, name, whose its compaction is). Tables that others make are found by themselves, too; this checks\n"
     "them, and is how the daemon is told to compact them. Exit code 1: something is damaged, or could not be taken.\n\n"
     "  tarn adopt shop --check\n"
     "  tarn adopt shop --compaction tarn\n"
     "  tarn adopt file:///data/warehouse/shop.db/orders --files all"},
    {"jobs", "[JOB]", 0, 1, tarn_cli_jobs_options, tarn_cli_jobs, "the queue of maintenance tasks",
     NULL},

    NOT_YET("orphans"),
    NOT_YET("reconcile"),
    NOT_YET("doctor"),
    NOT_YET("user"),
    NOT_YET("role"),
    NOT_YET("token"),
    NOT_YET("grant"),
    NOT_YET("revoke"),
    NOT_YET("policy"),
    NOT_YET("audit"),
    NOT_YET("backup"),
    NOT_YET("restore"),
    {0},
};
