import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { formatBytes } from '../../../base/bytes.ts'
import type { AppError } from '../../../base/errors.ts'
import { collectOutbox, copySideBySide, findShortcomings, type Outbox } from '../../../workspaces/outbox.ts'
import type { WorkspaceProblem } from '../../../workspaces/workspaces.ts'
import { exitCode, usage } from '../../errors.ts'
import { table } from '../../output/layout.ts'
import { paint, plainLine, print, printJson, warn } from '../../output/print.ts'
import { untilCancelled } from '../../signals.ts'
import type { Verb } from '../../verb.ts'
import { type FoundFolder, findWorkspaces, refused } from './find.ts'

export const verb: Verb = {
  name: 'workspace collect',
  summary: 'copy the outputs of a workspace, or of all in a folder, side by side',
  details:
    'Copies the outputs of each agent to TO/AGENT/, a new folder: all of them, or nothing. Leaves out links, devices and\n' +
    'other special files, with the reason. Changes nothing in any workspace. Exits with 1 if summary.md or a deliverable\n' +
    'is missing.',
  arguments: [{ name: 'FOLDER', optional: true }],
  options: [{ name: 'to', value: 'FOLDER', summary: 'the target folder (default: FOLDER.outputs)' }],
  examples: ['orc workspace collect researcher', 'orc workspace collect runs/run_1 --to results'],
  async run({ words, option, json }) {
    const found = findWorkspaces(words[0] ?? '.')
    const to = resolve(option('to') ?? `${found.path}.outputs`)
    refuseInside(found, to)
    const outboxes: Outbox[] = []
    for (const { workspace } of found.agents) {
      const outbox = await collectOutbox(workspace, { content: json })
      if (!outbox.ok) throw notCopied(outbox.error, to)
      outboxes.push(outbox.value)
    }
    const copied = await untilCancelled((signal) => copySideBySide(found.agents, to, signal))
    if (!copied.ok) throw notCopied(copied.error, to)
    let isWhole = true
    const rows: string[][] = []
    for (const [index, { name }] of found.agents.entries()) {
      const { outputs } = outboxes[index]!
      const leftOut = copied.value[index]!
      const missing = findShortcomings(outboxes[index]!)
      isWhole &&= missing.length === 0
      if (json) printJson({ name, to: resolve(to, name), outputs, left_out: leftOut, missing })
      else {
        rows.push(...outputs.map(({ path, size }) => [plainLine(`${name}/${path}`), formatBytes(size)]))
        for (const { message } of leftOut) warn(plainLine(`${name}/${message}`), 'left out')
        for (const { message } of missing) warn(plainLine(`${name}/${message}`), 'missing')
      }
    }
    if (!json) print([table(rows), paint('dim', `in ${to}`)].filter(Boolean).join('\n'))
    return isWhole ? exitCode('ok') : exitCode('error')
  },
}

/** Refuses a target inside a workspace, also through links. A workspace around everything is the caller's own. */
function refuseInside({ path, agents }: FoundFolder, to: string): void {
  for (const { name } of agents) {
    const target = resolve(to, name)
    const into = withFoldersAbove(realPathOf(target)).find(
      (folder) => isInUse(folder) && !path.startsWith(`${folder}/`),
    )
    if (into === undefined) continue
    throw usage(
      `${target} is inside the workspace of ${plainLine(basename(into))}`,
      'Choose a folder outside of the workspaces with --to.',
    )
  }
}

/** Recognized without status.json, which an agent may have removed. */
function isInUse(folder: string): boolean {
  return ['inbox', 'outbox'].every((part) => existsSync(join(folder, part)))
}

function withFoldersAbove(path: string): string[] {
  return path === dirname(path) ? [path] : [path, ...withFoldersAbove(dirname(path))]
}

/** The real path of something that may not exist yet. */
function realPathOf(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  return path === dirname(path) ? path : join(realPathOf(dirname(path)), basename(path))
}

function notCopied(problems: readonly WorkspaceProblem[], to: string): AppError {
  const isAtTarget = problems[0]!.path.startsWith(to)
  return refused(
    problems,
    isAtTarget
      ? 'Nothing was copied. Choose another folder with --to.'
      : 'Nothing was copied. If its agent is still at work, try again when it is done.',
  )
}
