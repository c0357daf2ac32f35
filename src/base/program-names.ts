/** Agent programs that the tmux and acp runtimes can start. Each checks its own settings under `with`. */
export const PROGRAMS = ['claude-code', 'codex', 'gemini', 'opencode', 'any'] as const
export type ProgramName = (typeof PROGRAMS)[number]
