import { resolve } from 'node:path'
import { copyOutbox } from '../../workspaces/keep-outputs.ts'
import { DEFAULT_LIMITS, formatBytes } from '../../workspaces/limits.ts'
import { collectOutbox, findShortcomings } from '../../workspaces/outbox.ts'
import { exitCode } from '../exit-code.ts'
import { complain, paint, plainLine, print, printJson } from '../output.ts'
import { table } from '../table.ts'
import type { Verb } from '../verb.ts'
import { findWorkspaces, refused } from '../workspace-folder.ts'

const limits = DEFAULT_LIMITS

export const verb: Verb = {
  name: 'workspace collect',
  group: 'Plans',
  summary: 'copy what a workspace delivered, or all those in a folder, side by side; needs no service',
  details:
    'The outputs of each agent go to TO/AGENT/. Links, devices and other traps are left out, each with why. Nothing is\n' +
    'changed in the workspaces. It ends with 1 where summary.md or a deliverable is missing.',
  arguments: [{ name: 'FOLDER', optional: true }],
  options: [{ name: 'to', value: 'FOLDER', summary: 'where they go (default: FOLDER.outputs)' }],
  examples: ['orc workspace collect researcher', 'orc workspace collect runs/run_1 --to results'],
  async run({ words, option, json }) {
    const found = findWorkspaces(words[0] ?? '.')
    const to = resolve(option('to') ?? `${found.path}.outputs`)
    let isWhole = true
    const rows: string[][] = []
    for (const { name, workspace } of found.agents) {
      const outbox = await collectOutbox(workspace, { limits, content: json })
      if (!outbox.ok) throw refused(outbox.problems, 'Nothing of it was copied.')
      const copied = await copyOutbox(workspace, resolve(to, name), { limits })
      if (!copied.ok) throw refused(copied.problems, 'Choose another folder with --to.')
      const missing = findShortcomings(outbox.value)
      const { outputs } = outbox.value
      isWhole &&= missing.length === 0
      if (json) printJson({ name, to: resolve(to, name), outputs, left_out: copied.value, missing })
      else {
        rows.push(...outputs.map(({ path, size }) => [plainLine(`${name}/${path}`), formatBytes(size)]))
        for (const { message } of copied.value) note('left out', `${name}/${message}`)
        for (const { message } of missing) note('missing', `${name}/${message}`)
      }
    }
    if (!json) print([table(rows), paint('dim', `in ${to}`)].filter(Boolean).join('\n'))
    return isWhole ? exitCode('ok') : exitCode('error')
  },
}

function note(what: string, text: string): void {
  complain(`${paint('yellow', `${what}:`, 'err')} ${plainLine(text)}`)
}
