import { existsSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { AppError } from '../../../base/errors.ts'
import { findExecutable } from '../../../programs/executable.ts'
import { paint, print, printJson, warn } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'init',
  summary: 'write an orc.yaml for the agent programs installed here',
  arguments: [{ name: 'FOLDER', optional: true }],
  options: [
    { name: 'force', summary: 'replace an existing orc.yaml' },
    { name: 'print', summary: 'print it without writing a file' },
  ],
  examples: ['orc init', 'orc init --print', 'orc init my-project && cd my-project && orc up'],
  async run({ words, flag, json, show }) {
    const folder = resolve(words[0] ?? '.')
    if (!existsSync(folder)) {
      throw new AppError('NOT_FOUND', `There is no folder ${folder}`, {
        hint: 'Create it first, or name another folder.',
      })
    }
    const file = join(folder, 'orc.yaml')
    const facts = await inspectProject(folder)
    const text = teamFile(facts)
    if (flag('print')) return show({ file, text }, () => text.trimEnd())
    try {
      writeFileSync(file, text, { flag: flag('force') ? 'w' : 'wx' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      throw new AppError('CONFLICT', `${file} already exists`, {
        hint: 'orc init --print shows what it would write; --force replaces the file.',
      })
    }
    const programs = facts.programs.map((found) => found.program)
    if (json) {
      printJson({ file, programs, tmux: facts.hasTmux })
      return 0
    }
    print(`Wrote ${file}`)
    print(
      programs.length === 0
        ? 'Found no agent program. Set one for each agent, or connect your own program with a token.'
        : `Found ${facts.programs.map((found) => found.title).join(', ')}.`,
    )
    if (!facts.hasTmux && programs.length > 0) {
      warn('tmux is missing. Agents in terminals need it; install it first.')
    }
    print(paint('dim', 'Next: review the file, then run orc up.'))
    return 0
  },
}

const ROLES = [
  { name: 'Master', role: 'plans the work, delegates it and is responsible for the result' },
  { name: 'Worker', role: 'does the work and reports back' },
  { name: 'Reviewer', role: 'reviews the work of the others' },
  { name: 'Scribe', role: 'keeps the documentation up to date' },
] as const

/** A first orc.yaml for the installed programs, with further settings as comments. */
function teamFile({ project, programs, isGit }: ProjectFacts): string {
  const team = chooseRoles(programs)
  return [
    `# The team of ${project.replace(/[^\x20-\x7e]/g, '?')}. Start it: orc up. Check this file: orc rules check`,
    '# docs/configuration.md explains every key; orc.schema.json makes editors complete them.',
    '',
    'agents:',
    ...team.flatMap((member, index) => memberLines(member, index)),
    ...(programs.length === 0 ? NOTHING_FOUND : []),
    '',
    '# Who may write to whom. mesh: everyone to everyone; tree: parent and child only.',
    'rules:',
    '  preset: tree',
    '  # ask:',
    '  #   - { from: Worker, to: "*", reason: a person approves each of its messages }',
    '',
    '# What agents may do besides sending messages: allow, deny, or ask a person.',
    'permissions:',
    '  spawn_agent: ask',
    '  terminate_agent: ask',
    '  urgent: deny # an urgent message interrupts its recipient',
    '',
    '# Prices per million tokens, and how much agents may spend before Orchub pauses them.',
    '# prices:',
    '#   claude-sonnet: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }',
    '# limits:',
    '#   spend: { per_agent: 5, total: 20 }',
    ...(isGit
      ? ['', '# Orchub stores its state and tokens in .orc/ beside this file: keep that folder out of git.']
      : []),
    '',
  ].join('\n')
}

interface NewMember {
  name: string
  role: string
  parent?: string
  found: InstalledProgram | undefined
}

/** Assigns one role per installed program, and at least two, because a single agent has nobody to talk to. */
function chooseRoles(programs: readonly InstalledProgram[]): NewMember[] {
  const count = Math.max(2, programs.length)
  return ROLES.slice(0, count).map(({ name, role }, index) => ({
    name,
    role,
    ...(index === 0 ? {} : { parent: 'Master' }),
    found: programs[index] ?? programs[0],
  }))
}

function memberLines({ name, role, parent, found }: NewMember, index: number): string[] {
  return [
    `  ${name}:`,
    `    role: ${role}`,
    ...(parent === undefined ? [] : [`    parent: ${parent}`]),
    ...(found === undefined
      ? ['    # program: claude-code | codex | gemini | opencode | any']
      : [`    program: ${found.program} # ${found.title}, in its own terminal`]),
    ...(index === 0 && found !== undefined ? FIRST_COMMENTS : []),
  ]
}

const FIRST_COMMENTS = [
  '    # folder: .            # where it works, relative to this file',
  '    # autostart: false     # start it with orc agent start',
  '    # with: { model: … , args: [], env: {} }   # settings for the program',
]

const NOTHING_FOUND = [
  '',
  '# Found no agent program on the PATH. Any program can act as an agent with its token: orc token create Worker',
]

/** An agent program on the PATH. */
interface InstalledProgram {
  program: 'claude-code' | 'codex' | 'gemini' | 'opencode'
  /** The product name, for messages. */
  title: string
  command: string
}

/** The facts about a folder that `orc init` uses. */
interface ProjectFacts {
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

async function inspectProject(folder: string): Promise<ProjectFacts> {
  const programs: InstalledProgram[] = []
  for (const program of KNOWN) if (await isOnPath(program.command)) programs.push(program)
  const isGit = existsSync(join(folder, '.git'))
  return { project: basename(folder), isGit, programs, hasTmux: await isOnPath('tmux') }
}

export async function isOnPath(command: string): Promise<boolean> {
  const query = { command, cwd: process.cwd(), path: process.env.PATH }
  return await findExecutable(query).then(
    () => true,
    () => false,
  )
}
