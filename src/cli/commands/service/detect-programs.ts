import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { basename, delimiter, join } from 'node:path'

/** An agent program that can be run here. */
export interface InstalledProgram {
  program: 'claude-code' | 'codex' | 'gemini' | 'opencode'
  /** As people call it. */
  title: string
  command: string
}

/** What a first look at a folder tells. */
export interface Surroundings {
  folder: string
  /** A name for the team in comments. */
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

export function lookAround(folder: string, path = process.env.PATH ?? ''): Surroundings {
  return {
    folder,
    project: basename(folder),
    isGit: existsSync(join(folder, '.git')),
    programs: KNOWN.filter(({ command }) => isOnPath(command, path)),
    hasTmux: isOnPath('tmux', path),
  }
}

export function isOnPath(command: string, path = process.env.PATH ?? ''): boolean {
  return path.split(delimiter).some((place) => {
    if (place === '') return false
    try {
      const file = join(place, command)
      accessSync(file, constants.X_OK)
      return statSync(file).isFile()
    } catch {
      return false
    }
  })
}
