import { execFileSync } from 'node:child_process'

/** Runs git with an identity of its own, whatever the settings of the machine, and returns what it prints. */
export function git(cwd: string, ...args: string[]): string {
  const identity = ['-c', 'user.name=A', '-c', 'user.email=a@example.org']
  return execFileSync('git', [...identity, ...args], { cwd, encoding: 'utf8' }).trim()
}
