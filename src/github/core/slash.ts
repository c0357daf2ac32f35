/** `/agent …` in comments: what was said, and whether its author may. */

export const SLASH_COMMANDS = [
  'help',
  'summarize',
  'find-gfi',
  'draft-docs',
  'repo-stats',
  'approve',
  'reject',
] as const
export type SlashName = (typeof SLASH_COMMANDS)[number]

export interface SlashCommand {
  readonly name: SlashName
  readonly words: string
}

export type Said = SlashCommand | { readonly name: undefined; readonly said: string }

const LINE = /^\/agent(?:[ \t]+(\S+)(?:[ \t]+(.*))?)?$/i
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/
/** A comment with more of them is no conversation. */
const MOST = 5

/** A command begins its line. What is quoted, indented or in a code block is only shown. */
export function readSlashCommands(body: string): Said[] {
  const found: Said[] = []
  let fence: string | undefined
  for (const line of body.split(/\r\n|\r|\n/)) {
    const mark = FENCE.exec(line)
    if (fence !== undefined) {
      if (mark !== null && mark[1]!.startsWith(fence) && mark[2]!.trim() === '') fence = undefined
      continue
    }
    if (mark) {
      fence = mark[1]!
      continue
    }
    const said = LINE.exec(line.trimEnd())
    if (said !== null && found.length < MOST) found.push(toCommand(said[1] ?? 'help', said[2] ?? ''))
  }
  return found
}

function toCommand(said: string, words: string): Said {
  const name = SLASH_COMMANDS.find((one) => one === said.toLowerCase())
  return name === undefined ? { name, said: said.slice(0, 40) } : { name, words: words.trim() }
}

/** From nobody in particular to the owner. What GitHub adds one day counts as nobody (C19). */
const RANKS: readonly string[] = ['CONTRIBUTOR', 'COLLABORATOR', 'MEMBER', 'OWNER']

/** The least association. `people`: only whom orc.yaml names, whatever GitHub says of them. */
export const PERMISSIONS: Record<SlashName, 'anyone' | 'people' | 'CONTRIBUTOR' | 'COLLABORATOR'> = {
  help: 'anyone',
  'find-gfi': 'anyone',
  summarize: 'CONTRIBUTOR',
  'repo-stats': 'CONTRIBUTOR',
  'draft-docs': 'COLLABORATOR',
  approve: 'people',
  reject: 'people',
}

export interface Author {
  readonly association: string
  /** The person of orc.yaml with this login. */
  readonly person: string | undefined
}

export function maySay(name: SlashName, { association, person }: Author): boolean {
  const needed = PERMISSIONS[name]
  if (needed === 'anyone') return true
  if (needed === 'people') return person !== undefined
  return person !== undefined || RANKS.indexOf(association) >= RANKS.indexOf(needed)
}

/** `req_7` and what else was said. */
export function readVerdict(words: string): { request: string; comment: string } | undefined {
  const match = /^(req_[1-9]\d{0,15})(?:\s+([\s\S]*))?$/i.exec(words)
  return match === null ? undefined : { request: match[1]!.toLowerCase(), comment: match[2]?.trim() ?? '' }
}

export function helpText(): string {
  return [
    '| command | |',
    '|---|---|',
    '| `/agent summarize` | a summary of this thread |',
    '| `/agent find-gfi` | issues that are good to begin with |',
    '| `/agent draft-docs` | a draft of documentation for this |',
    '| `/agent repo-stats` | how this repository is doing |',
    '| `/agent approve ID`, `/agent reject ID` | a verdict on what an agent proposes, by those it is asked of |',
  ].join('\n')
}
