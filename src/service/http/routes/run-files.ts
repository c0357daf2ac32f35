import { type FileEnd, readRunLog, readRunOutput } from '../../../engine/run-files.ts'
import { AppError } from '../../../model/errors.ts'
import type { RunNode } from '../../../model/run.ts'
import type { Call, Desk, RouteHandler } from '../call.ts'
import { namedRun } from './runs.ts'

/** As much as a page shows at once; the file itself is in the workspace. */
const MOST_BYTES = 256 * 1024

export const showRunLog: RouteHandler<'runLog'> = async (desk, call) => {
  const { place, node } = await namedNode(desk, call)
  const attempt = call.query.attempt ?? node.attempt
  return shown(desk, readRunLog(place, node.name, attempt, MOST_BYTES), `${node.name} printed nothing`)
}

export const showRunOutput: RouteHandler<'runOutput'> = async (desk, call) => {
  const { place, node } = await namedNode(desk, call)
  const { path } = call.query
  if (!(node.result?.outputs ?? []).some((output) => output.path === path))
    throw new AppError('NOT_FOUND', `${node.name} has no output ${path.slice(0, 200)}`)
  return shown(desk, readRunOutput(place, node.name, path, MOST_BYTES), `${path} is not there any more`)
}

async function namedNode(desk: Desk, call: Call): Promise<{ place: string; node: RunNode }> {
  const { run, place } = await namedRun(desk, call)
  const node = run.nodes.get(call.params.agent!)
  if (node !== undefined) return { place, node }
  throw new AppError('NOT_FOUND', `The run has no agent ${call.params.agent!.slice(0, 100)}`)
}

function shown({ switchboard }: Desk, end: FileEnd | undefined, otherwise: string) {
  if (end === undefined) throw new AppError('NOT_FOUND', otherwise)
  return { text: switchboard.redact(end.text), bytes: end.bytes, cut: end.isCut }
}
