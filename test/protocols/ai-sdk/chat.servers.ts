import { describeChats } from './chat.ts';

describeChats(['ai5']);
