import { createStartups, type StartupsOptions } from './await-startup.ts'
import { type CommandWorkersOptions, createCommandWorkers } from './command.ts'
import { createMemberWorkers, type MemberWorkersOptions } from './member.ts'
import { createModelWorkers, type ModelWorkersOptions } from './model.ts'
import type { WorkerKind, WorkerKinds, WorkOrder, WorkPort } from './worker.ts'

export type { MemberTasks } from './member.ts'

type WorkersOptions = CommandWorkersOptions &
  Omit<MemberWorkersOptions, 'startups' | 'sessions'> &
  ModelWorkersOptions &
  Pick<StartupsOptions, 'sessions' | 'isHalted'>

/** Everything that can work on an agent of a plan, by the kind of its runner. */
export function openWorkers(options: WorkersOptions) {
  const startups = createStartups(options)
  const member = createMemberWorkers({ ...options, startups })
  const kinds: WorkerKinds = {
    command: createCommandWorkers(options),
    files: outsiders,
    agent: member,
    model: createModelWorkers(options),
    program: member,
  }
  return {
    kinds,
    /** The name in the team of the agent that does the work; undefined if no member does it. */
    memberName: member.nameOf,
    close() {
      member.close()
      startups.close()
    },
  }
}

function followOutsider(_: WorkOrder, port: WorkPort) {
  return {
    stop: () => port.ended({ code: null, signal: null, lost: false, why: '' }),
    freeze() {},
    close: async () => {},
  }
}

/** Someone outside, seen only through status.json: there is no process to start or stop. */
const outsiders: WorkerKind = { start: followOutsider, find: followOutsider }
