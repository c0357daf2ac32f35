import { type InstalledProgram, lookAround, type Surroundings } from './detect-programs.ts'

const ROLES = [
  { name: 'Master', role: 'plans the work, hands it out and answers for the result' },
  { name: 'Worker', role: 'does the work and reports back' },
  { name: 'Reviewer', role: 'checks what the others say and make' },
  { name: 'Scribe', role: 'keeps the documentation true' },
] as const

/** A first orc.yaml: a team of what is installed, every line explained, the rest of the choices in comments. */
export function teamFile({ project, programs, isGit }: Surroundings): string {
  const team = cast(programs)
  return [
    `# The team of ${project.replace(/[^\x20-\x7e]/g, '?')}. Start it: orc up. Check this file: orc rules check`,
    '# Every key is explained in docs/configuration.md of Orchub; editors know them from orc.schema.json.',
    '',
    'agents:',
    ...team.flatMap((member, index) => memberLines(member, index)),
    ...(programs.length === 0 ? NOTHING_FOUND : []),
    '',
    '# Who may write to whom. mesh: everyone to everyone; tree: parent and child only.',
    'rules:',
    '  preset: tree',
    '  # ask:',
    '  #   - { from: Worker, to: "*", reason: a person reads each of its messages first }',
    '',
    '# What agents may do beyond writing messages: allow, deny, or ask a person.',
    'permissions:',
    '  spawn_agent: ask',
    '  terminate_agent: ask',
    '  urgent: deny # an urgent message interrupts its receiver',
    '',
    '# What a model costs, per million tokens, and how much may be spent before agents are paused.',
    '# prices:',
    '#   claude-sonnet: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }',
    '# limits:',
    '#   spend: { per_agent: 5, total: 20 }',
    ...(isGit
      ? ['', '# State, mail and tokens are kept in .orc/ beside this file: keep it out of git.']
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

/** One role for each program that is there, at least two: a team of one has nobody to talk to. */
function cast(programs: readonly InstalledProgram[]): NewMember[] {
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
      : [`    program: ${found.program} # ${found.title}, in a terminal of its own`]),
    ...(index === 0 && found !== undefined ? FIRST_COMMENTS : []),
  ]
}

const FIRST_COMMENTS = [
  '    # folder: .            # where it works, relative to this file',
  '    # autostart: false     # start it with orc spawn only',
  '    # with: { model: … , args: [], env: {} }   # settings of the program',
]

const NOTHING_FOUND = [
  '',
  '# No agent program was found on the PATH. Without one, an agent is whoever holds its token (orc token Worker).',
]

/** A first orc.yaml for a folder, and what it was made from. */
export function proposeTeam(folder: string): { text: string; around: Surroundings } {
  const around = lookAround(folder)
  return { text: teamFile(around), around }
}
