import { type InstalledProgram, inspectProject, type ProjectFacts } from './detect-programs.ts'

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
  '# Found no agent program on the PATH. Any program can act as an agent with its token: orc token Worker',
]

export function proposeTeam(folder: string): { text: string; facts: ProjectFacts } {
  const facts = inspectProject(folder)
  return { text: teamFile(facts), facts }
}
