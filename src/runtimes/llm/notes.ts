import type { TurnEnd } from './record.ts'

/** What the service itself tells a model, in the words of its other notices. */
const NOTE = '[ORCHUB NOTICE]'

const ENDED: Record<TurnEnd, string | undefined> = {
  answered: undefined,
  interrupted: 'Your turn was interrupted here, before it was finished.',
  max_steps: 'Your turn was ended here: it had used tools as often as one turn may (with.max_steps).',
  refused: 'There was no answer here: it was refused.',
  too_long: 'There was no answer here: the conversation was too long for the model.',
}

export function endNote(how: TurnEnd): string | undefined {
  const said = ENDED[how]
  return said === undefined ? undefined : `${NOTE} ${said}`
}

export function leftOutNote(turns: number): string {
  return `${NOTE} ${turns === 1 ? 'One earlier turn' : `${turns} earlier turns`} of this conversation left out for want of room. Messages of that time can be read with query_mailbox, filter "all".`
}

export const NOT_CARRIED_OUT = `${NOTE} Not carried out: the turn was interrupted before.`

export function invalidCall(why: string): string {
  return `${NOTE} Nothing was done: ${why}. Look at the tools you have and their parameters, and try again.`
}
