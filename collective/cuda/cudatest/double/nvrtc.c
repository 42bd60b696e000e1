// A double of libnvrtc: compiles kernels with gcc behind shim.h, which lies beside
// this library, to a shared object that the double of libcuda runs. Its log has
// the form of the real one's, NAME(LINE): error: TEXT. As the real one it opens
// its builtins by their soname, and fails where they were not opened before.
#define _GNU_SOURCE
#include "abi/nvrtc.h"
#include "double.h"
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OK = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6, BUILTIN = 7, INTERNAL = 11 };

extern char **environ;

struct _nvrtcProgram {
	char *source, *name;
	char *image, *log;
	size_t image_size;
};

// FAULT asks the machine for faults, where the process has one.
#define FAULT() \
	do { \
		void *machine = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); \
		int failed = machine ? eb_machine()->fault(__func__) : 0; \
		if (failed) return failed; \
	} while (0)

const char *nvrtcGetErrorString(nvrtcResult code) {
	static const char *const names[] = {"NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "NVRTC_ERROR_INVALID_INPUT",
		"NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION", "NVRTC_ERROR_COMPILATION", "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"};
	return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int *major, int *minor) {
	FAULT();
	*major = NVRTC_MAJOR;
	*minor = 0;
	return OK;
}

static const int archs[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};

nvrtcResult nvrtcGetNumSupportedArchs(int *n) {
	FAULT();
	*n = sizeof archs / sizeof *archs;
	return OK;
}

nvrtcResult nvrtcGetSupportedArchs(int *out) {
	FAULT();
	memcpy(out, archs, sizeof archs);
	return OK;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source, const char *name, int headers, const char *const *texts, const char *const *names) {
	FAULT();
	if (headers || texts || names || !source || !name) return INVALID_INPUT;
	nvrtcProgram p = calloc(1, sizeof *p);
	p->source = strdup(source);
	p->name = strdup(name);
	p->log = strdup("");
	*out = p;
	return OK;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *at) {
	nvrtcProgram p = *at;
	if (!p) return INVALID_PROGRAM;
	free(p->source), free(p->name), free(p->log), free(p->image), free(p);
	*at = NULL;
	FAULT();
	return OK;
}

// read_whole returns a file, with a 0 after it, or NULL.
static char *read_whole(const char *path, size_t *n) {
	FILE *f = fopen(path, "rb");
	if (!f) return NULL;
	char *text = NULL;
	size_t room = 0;
	*n = 0;
	for (size_t got = 1; got; *n += got) {
		if (room - *n < 65536) text = realloc(text, (room = 2 * room + 65537) + 1);
		got = fread(text + *n, 1, room - *n, f);
	}
	text[*n] = 0;
	fclose(f);
	return text;
}

// run runs gcc with its words on standard error in a file, and returns its status.
static int run(char *const *argv, const char *words) {
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 2, words, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	pid_t pid;
	int bad = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ), status = -1;
	posix_spawn_file_actions_destroy(&actions);
	if (bad) return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
	return status;
}

// real_log rewrites gcc's NAME:LINE:COLUMN: TEXT to NAME(LINE): TEXT.
static char *real_log(const char *name, char *text) {
	size_t len = strlen(name);
	char *out = malloc(strlen(text) + 2), *to = out;
	for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		int at, column, used;
		if (!strncmp(line, name, len) && sscanf(line + len, ":%d:%d:%n", &at, &column, &used) == 2) {
			to += sprintf(to, "%s(%d):%s\n", name, at, line + len + used);
		} else {
			to += sprintf(to, "%s\n", line);
		}
	}
	*to = 0;
	free(text);
	return out;
}

// own_folder is where this library lies.
static void own_folder(char *out, size_t len) {
	Dl_info info = {0};
	dladdr((void *)(uintptr_t)nvrtcVersion, &info);
	snprintf(out, len, "%s", info.dli_fname ? info.dli_fname : ".");
	char *slash = strrchr(out, '/');
	if (slash) *slash = 0;
}

// build compiles the source in a folder of its own.
static int build(nvrtcProgram p, const char *folder, uint64_t arch, const char *const *defines, int ndefines) {
	char source[300], object[300], words[300], shim[4200];
	snprintf(source, sizeof source, "%s/kernel.c", folder);
	snprintf(object, sizeof object, "%s/kernel.so", folder);
	snprintf(words, sizeof words, "%s/words", folder);
	own_folder(shim, sizeof shim - 8);
	strcat(shim, "/shim.h");
	FILE *f = fopen(source, "w");
	if (!f) return INTERNAL;
	fprintf(f, "#line 1 \"%s\"\n%s", p->name, p->source);
	fclose(f);
	// -nostdlib: who opens it has the C library, and linking it again is a third of the time.
	const char *argv[64] = {"gcc", "-x", "c", "-std=gnu11", "-O1", "-w", "-fPIC", "-shared", "-nostdlib", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-diagnostics-show-caret",
		"-include", shim, "-o", object, source, "-lm"};
	int n = 18;
	for (int i = 0; i < ndefines && n < 63; i++) argv[n++] = defines[i];
	int status = run((char *const *)argv, words);
	size_t size;
	char *log = read_whole(words, &size);
	if (log) {
		free(p->log);
		p->log = real_log(p->name, log);
	}
	char *code = NULL;
	if (status == 0) code = read_whole(object, &size);
	remove(source), remove(object), remove(words);
	if (!code) return status == -1 ? INTERNAL : COMPILATION;
	image_head head = {IMAGE_MAGIC, size, arch};
	p->image_size = sizeof head + size;
	p->image = malloc(p->image_size);
	memcpy(p->image, &head, sizeof head);
	memcpy(p->image + sizeof head, code, size);
	free(code);
	return OK;
}

static bool begins(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options) {
	FAULT();
	const char *defines[32];
	int ndefines = 0;
	uint64_t arch = 0;
	for (int i = 0; i < n; i++) {
		const char *o = options[i];
		if (begins(o, "--gpu-architecture=sm_")) arch = strtoull(o + 22, NULL, 10);
		else if (begins(o, "-D") && ndefines < 32) defines[ndefines++] = o;
		else if (!begins(o, "--fmad=") && !begins(o, "--std=") && !begins(o, "--diag-suppress=") && strcmp(o, "--ptxas-options=-v") && strcmp(o, "--restrict") && strcmp(o, "--device-as-default-execution-space") && strcmp(o, "--extra-device-vectorization")) {
			free(p->log);
			if (asprintf(&p->log, "nvrtc: error: unrecognized option %s found\n", o) < 0) return OUT_OF_MEMORY;
			return INVALID_OPTION;
		}
	}
	if (!arch) return INVALID_OPTION; // the real one would compile for its oldest, to PTX
	char builtins[64];
	snprintf(builtins, sizeof builtins, "libnvrtc-builtins.so.%d.0", NVRTC_MAJOR);
	if (!dlopen(builtins, RTLD_NOW)) {
		free(p->log);
		if (asprintf(&p->log, "nvrtc: error: failed to open %s.\n  Make sure that %s is installed correctly.\n", builtins, builtins) < 0) return OUT_OF_MEMORY;
		return BUILTIN;
	}
	const char *tmp = getenv("TMPDIR");
	char folder[256];
	snprintf(folder, sizeof folder, "%s/ebdouble-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder)) return INTERNAL;
	int code = build(p, folder, arch, defines, ndefines);
	rmdir(folder);
	return code;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n) {
	FAULT();
	if (!p->image) return INVALID_PROGRAM;
	*n = p->image_size;
	return OK;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *image) {
	FAULT();
	memcpy(image, p->image, p->image_size);
	return OK;
}

// gcc makes no PTX.
nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n) {
	FAULT();
	if (!p->image) return INVALID_PROGRAM;
	*n = 1;
	return OK;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *text) {
	FAULT();
	(void)p;
	*text = 0;
	return OK;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n) {
	FAULT();
	*n = strlen(p->log) + 1;
	return OK;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *log) {
	FAULT();
	strcpy(log, p->log);
	return OK;
}
