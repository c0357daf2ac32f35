import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { basename, delimiter, join } from 'node:path'

/** An agent program on the PATH. */
export interface InstalledProgram {
  program: 'claude-code' | 'codex' | 'gemini' | 'opencode'
  /** The product name, for messages. */
  title: string
  command: string
}

/** The facts about a folder that `orc init` uses. */
export interface ProjectFacts {
  folder: string
  project: string
  isGit: boolean
  programs: readonly InstalledProgram[]
  hasTmux: boolean
}

const KNOWN: readonly InstalledProgram[] = [
  { program: 'claude-code', title: 'Claude Code', command: 'claude' },
  { program: 'codex', title: 'Codex', command: 'codex' },
  { program: 'gemini', title: 'Gemini CLI', command: 'gemini' },
  { program: 'opencode', title: 'opencode', command: 'opencode' },
]

export function inspectProject(folder: string, path = process.env.PATH ?? ''): ProjectFacts {
  return {
    folder,
    project: basename(folder),
    isGit: existsSync(join(folder, '.git')),
    programs: KNOWN.filter(({ command }) => isOnPath(command, path)),
    hasTmux: isOnPath('tmux', path),
  }
}

export function isOnPath(command: string, path = process.env.PATH ?? ''): boolean {
  return path.split(delimiter).some((folder) => {
    if (folder === '') return false
    try {
      const file = join(folder, command)
      accessSync(file, constants.X_OK)
      return statSync(file).isFile()
    } catch {
      return false
    }
  })
}
